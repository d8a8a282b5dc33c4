"""A2, C5: a secret that the agent comes across, whole or in pieces, gets into no store, prompt or page.

Files have names that say nothing, so that only what is in them counts.
"""

import asyncio
import json
from collections.abc import Iterator, Sequence
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import cast

import pytest

from hone.cli.main import perform
from hone.core.clock import ManualClock
from hone.core.events import Event
from hone.core.messages import Message, Role, ToolCall, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.faults import FAULTS, Fault, refuse
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import Script, call, echo
from hone.settings import Settings
from hone.settings.sections import Guardrails, Learning
from tests.conftest import Figures, Tier
from tests.core.secret_shapes import HOLDERS, KEY_FILES, Holder
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS
from tests.web.rig import Running, listen, running

PATIENT = Settings(
    tries=1, guardrails=Guardrails(same_call=(900, 999), same_tool=(900, 999), same_result=(900, 999))
)
STATUSES = (400, 401, 403, 404, 413, 429, 500, 503)
PIECE = 24
"""Letters of a long secret that count as the secret."""
CUTS = (
    "cat {0}",
    "grep -n '' {0}",
    "head -n 3 {0}; echo; tail -n 2 {0}; echo; sed -n 3,5p {0}",
    'while read -r line; do echo "$line"; echo; done < {0}',
    'awk \'{{ print last; print NR, $0; print ""; last = NR " " $0 }}\' {0}',
)
TORN = "head -c 250 {0}; echo; tail -c 250 {0}; echo; head -c 300 {0} | tail -c 200"
"""For keys. The half of a password cannot be told."""
PATTERNS = (".", "[0-9]", "[A-Z][a-z]", "password|KEY|machine|key", "[A-Za-z0-9+/]{40}")


def work(name: str, holder: Holder) -> dict[str, list[ToolCall]]:
    """The calls by which the agent comes across what a file holds."""
    lines = holder.text.count("\n") + 1
    slices = [(offset, limit) for offset in range(1, lines + 1) for limit in (1, 2)]
    cuts = CUTS[:1] if holder.whole else (*CUTS, TORN) if holder in KEY_FILES else CUTS
    return {
        "whole": [call("read_file", path=name)],
        "slice": [call("read_file", path=name, offset=offset, limit=limit) for offset, limit in slices],
        "search": [call("search_files", pattern=each, path=name, limit=1_000) for each in PATTERNS],
        "command": [call("terminal", command="; echo; ".join(cuts).format(name))],
        "diff": [
            *(call("patch", path=name, find=f"# {at}.\n", replace="# changed\n") for at in range(lines + 1)),
            call("patch", path=name, find="password = ?????????", replace=""),
        ],
    }


def commented(holder: Holder) -> str:
    """The file with a comment before each line, or around a secret of several lines."""
    lines = holder.text.rstrip("\n").split("\n")
    if holder in KEY_FILES or holder.name == "wallet.txt":
        lines = ["\n".join(lines)]
    return "".join([*(f"# {at}.\n{line}\n" for at, line in enumerate(lines)), f"# {len(lines)}.\n"])


def answering(calls: dict[str, list[ToolCall]]) -> Script:
    """A model that makes the calls its user names, and then has no more to say."""

    def answer(messages: Sequence[Message]) -> Message:
        asked = max(at for at, message in enumerate(messages) if message.role is Role.USER)
        wanted = calls.get(messages[asked].text, [])
        return assistant("Looking.", *wanted) if wanted and asked == len(messages) - 1 else assistant("Done.")

    return answer


def pieces(secret: str) -> list[bytes]:
    starts = range(0, max(1, len(secret) - PIECE + 1), max(PIECE // 2, len(secret) // 40))
    return [secret[start : start + PIECE].encode() for start in starts]


def found(secrets: Sequence[str], places: Sequence[bytes]) -> set[str]:
    return {each for each in secrets for piece in pieces(each) for place in places if piece in place}


async def turn(visit: Running, words: str, session: str = "") -> tuple[str, bytes]:
    """The session, and what a page hears of the turn."""
    path = f"/api/sessions/{session}/messages" if session else "/api/sessions"
    id = str((await visit.post(path, text=words))["session"])
    heard = await listen(visit.client, f"/api/sessions/{id}/events", "ended")
    return id, json.dumps(heard.events, ensure_ascii=False).encode()


async def page(visit: Running, sessions: Sequence[str]) -> list[bytes]:
    """What every page shows."""
    paths = ["/api/sessions", "/api/reviews", "/api/status", "/api/figures", "/api/changes", "/api/pending"]
    paths += [f"/api/sessions/{id}{more}" for id in sessions for more in ("", "/tree")]
    paths += [f"/api/search?query={words}" for words in ("redacted", "password", "private+key", "refused")]
    paths += [f"/api/reviews/{each['id']}" for each in (await visit.get("/api/reviews"))["reviews"]]
    answers = [await visit.client.get(path) for path in paths]
    assert [each.url.path for each in answers if each.status_code != 200] == []
    return [each.content for each in answers]


def exported(home: Path, sessions: Sequence[str]) -> Iterator[bytes]:
    formats = [
        ["sessions", "export", id, "--format", kind] for id in sessions for kind in ("json", "markdown")
    ]
    for arguments in (*formats, ["traces", "export"], ["reviews"]):
        out = StringIO()
        with redirect_stdout(out):
            assert perform(["--home", str(home), *arguments]) == 0
        yield out.getvalue().encode()


@pytest.mark.parametrize("way", ["whole", "slice", "search", "command", "diff"])
def test_what_a_tool_comes_across_is_redacted_wherever_it_goes(
    way: str, home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    calls: dict[str, list[ToolCall]] = {}
    secrets: list[str] = []
    for draw in tier.draws(short=8, full=len(HOLDERS)):
        holder = HOLDERS[draw.index]
        (tmp_path / f"file{draw.index}").write_text(commented(holder) if way == "diff" else holder.text)
        calls[f"number {draw.index}"] = work(f"file{draw.index}", holder)[way]
        secrets += holder.secrets

    async def story() -> tuple[list[str], list[bytes], list[bytes]]:
        async with running(home, tmp_path, answering(calls), settings=PATIENT) as visit:
            turns = [await turn(visit, words) for words in calls]
            sessions = [session for session, _ in turns]
            shown = [*(heard for _, heard in turns), *await page(visit, sessions)]
            return sessions, visit.stage.bodies, shown

    sessions, prompts, shown = asyncio.run(story())
    assert b"[redacted: " in b"".join(prompts)
    places = {
        "store": [path.read_bytes() for path in home.rglob("*") if path.is_file()],
        "prompt": prompts,
        "export": list(exported(home, sessions)),
        "page": shown,
    }
    got_in = [(name, each) for name, texts in places.items() for each in sorted(found(secrets, texts))]
    figures.tally(len(secrets) * len(places), got_in=len(got_in), note=f"secrets by {way}, in four places")
    assert got_in == []


def test_what_a_provider_repeats_in_an_error_is_redacted_wherever_it_goes(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets: list[str] = []
    names: list[str] = []
    for draw in tier.draws(short=len(HOLDERS), full=len(HOLDERS)):
        holder, name = HOLDERS[draw.index], f"echo-{draw.index}"
        said = refuse(STATUSES[draw.index % len(STATUSES)], f"You sent:\n{holder.text}")
        monkeypatch.setitem(cast(dict[str, Fault], FAULTS), name, said)
        names.append(name)
        secrets += holder.secrets

    async def story() -> tuple[str, list[bytes], list[bytes]]:
        async with running(home, tmp_path, settings=PATIENT) as visit:
            session, shown = await turn(visit, "hello")
            heard = [shown]
            for name in names:
                visit.stage.fault = name
                heard.append((await turn(visit, "again", session))[1])
            mark = (await visit.get("/api/status"))["mark"]
            await visit.post(f"/api/sessions/{session}/review")
            await listen(visit.client, "/api/events", "reviews", since=mark)
            await visit.state.hone.background.drain()
            visit.stage.fault = None
            heard.append((await turn(visit, "and now?", session))[1])
            return session, visit.stage.bodies, [*heard, *await page(visit, [session])]

    session, prompts, shown = asyncio.run(story())
    assert prompts[-1].count(b"You sent: ") >= len(names) // 2
    places = {
        "store": [path.read_bytes() for path in home.rglob("*") if path.is_file()],
        "prompt": prompts,
        "export": list(exported(home, [session])),
        "page": shown,
    }
    got_in = [(name, each) for name, texts in places.items() for each in sorted(found(secrets, texts))]
    figures.tally(len(secrets) * len(places), got_in=len(got_in), note="secrets in errors, in four places")
    assert got_in == []


KEY = "plain/words+as-a-key=nobody&knows"
"""Has no shape that could be recognized."""


@pytest.mark.parametrize("format", FORMATS)
def test_a_key_that_its_provider_repeats_gets_in_nowhere(
    format: Format, home: Path, tmp_path: Path, figures: Figures, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the sentence of a refusal, of a retry, of a fallback and of a review, with a key of any shape."""
    monkeypatch.setenv("STAGE_KEY", KEY)
    for status in STATUSES:
        said = refuse(status, f"Your key {KEY} is no good. We got: Authorization: Bearer {KEY}")
        monkeypatch.setitem(cast(dict[str, Fault], FAULTS), f"echo-{status}", said)
    events: list[Event] = []
    reviews: list[str] = []

    async def story() -> tuple[str, list[bytes]]:
        async with FakeProvider(echo) as stage, FakeProvider(echo) as spare:
            settings = Settings(tries=2, fallback="spare/scripted", learning=Learning(turns=1))
            servers = provider(format, stage.url, "STAGE_KEY"), provider(format, spare.url, "STAGE_KEY")
            clock = ManualClock()
            async with furnish(home, tmp_path, *servers, clock=clock, settings=settings) as hone:
                for status in STATUSES:
                    stage.fault = f"echo-{status}"
                    session = await hone.session()
                    await session.send("hello", events.append)
                    await session.send("and again", events.append)
                    spare.fault = f"echo-{status}"
                    await session.send("once more", events.append)
                    await hone.background.drain()
                    spare.fault = None
                    await session.send("and now?", events.append)
                reviews.extend([job.error for job in await hone.jobs.jobs()])
            return session.id, [*stage.bodies, *spare.bodies]

    session, prompts = asyncio.run(story())
    places = {
        "store": [path.read_bytes() for path in home.rglob("*") if path.is_file()],
        "prompt": prompts,
        "export": list(exported(home, [session])),
        "screen": [repr((events, reviews)).encode()],
    }
    assert all(b"[redacted: key]" in b"".join(texts) for texts in places.values())
    assert any("[redacted: key]" in each for each in reviews)
    got_in = [name for name, texts in places.items() if found([KEY], texts)]
    tried = len(STATUSES) * len(places)
    figures.tally(tried, got_in=len(got_in), note="a key of no known shape in errors, in four places")
    assert got_in == []
