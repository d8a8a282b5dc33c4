"""I3, F1: many conversations in one server lose nothing, and its end under load is an end in good order."""

import asyncio
import os
import re
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from statistics import quantiles
from time import perf_counter

import httpx2
import pytest

from hone import Hone
from hone.core.jobs import State
from hone.core.messages import Message, Role, assistant
from hone.knowledge.metadata import metadata
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, rounds
from tests.cli.driving import environment
from tests.conftest import Figures, Tier
from tests.faults.furnish import furnish, provider
from tests.models.loopback import until
from tests.rig import faults
from tests.web.rig import PATIENCE, Running, listen, running

TURNS, CALLS = 5, 3
CANARY = re.compile(r"canary-\d+-")
FOREVER = "forever"


def busy(messages: Sequence[Message]) -> Message:
    """Some tool calls, then what the user said; or calls without an end."""
    asked = max(at for at, message in enumerate(messages) if message.role is Role.USER)
    words = messages[asked].text
    done = sum(message.role is Role.ASSISTANT for message in messages[asked:])
    if "look back over" in words:
        return assistant("Nothing to save.")
    if done < CALLS or FOREVER in words:
        return assistant(call("todo", items=[{"text": f"{words} {done}"}]))
    return assistant(f"Done: {words}")


async def ask(client: httpx2.AsyncClient, name: str, words: str) -> str:
    response = await client.post(
        "/v1/chat/completions",
        json={"messages": [{"role": "user", "content": words}]},
        headers={"x-hone-session": name},
    )
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


async def talk(visit: Running, number: int, seconds: list[float]) -> None:
    for turn in range(TURNS):
        words, begun = f"canary-{number}-{turn}", perf_counter()
        assert await ask(visit.client, f"talk-{number}", words) == f"Done: {words}"
        seconds.append(perf_counter() - begun)


async def test_many_sessions_in_one_server_lose_nothing_and_mix_nothing(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=12, full=200)
    seconds: list[float] = []
    async with running(home, tmp_path, busy, latency=0.05) as visit:
        limits = httpx2.Limits(max_connections=None)
        async with httpx2.AsyncClient(
            base_url=visit.url, headers=visit.client.headers, limits=limits, timeout=600
        ) as visit.client:
            begun = perf_counter()
            await asyncio.gather(*(talk(visit, number, seconds) for number in range(count)))
            lasted = perf_counter() - begun
        assert visit.stage.invalid == []
    async with furnish(home, tmp_path) as hone:
        found = await hone.sessions.list(None)
        assert len(found) == count
        for each in found:
            stored = await hone.sessions.load(each.header.id)
            assert faults(list(stored.transcript)) == []
            assert len(stored.transcript) == TURNS * (2 + 2 * CALLS)
            whole = b"".join(node.encoded for node in stored.transcript.nodes).decode()
            assert len(set(CANARY.findall(whole))) == 1
            assert len(await hone.sessions.spending(each.header.id)) == TURNS * (CALLS + 1)
    figures(
        f"{count} sessions x {TURNS} turns x {CALLS} tool calls, provider of 50 ms, all in one process: "
        f"0 errors, 0 lost, 0 mixed up; {count * TURNS / lasted:.0f} turns a second, "
        f"99 of 100 turns within {quantiles(seconds, n=100)[-1]:.2f} s"
    )


@asynccontextmanager
async def serving(home: Path, folder: Path, stage: FakeProvider) -> AsyncIterator[httpx2.AsyncClient]:
    """The real command, as a process of its own. It is told to end when nobody needs it any more."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hone", "serve", "--no-open", "--port", "0", "--grace", "0.5"),
        env=environment(home, stage),
        cwd=folder,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            line = (await process.stdout.readline()).decode()
        found = re.search(r"(http://127\.0\.0\.1:\d+)/login\?ticket=\S+$", line.strip())
        assert found is not None, line
        headers = {"authorization": f"Bearer {(home / 'serve.key').read_text().strip()}"}
        async with httpx2.AsyncClient(base_url=found[1], headers=headers, timeout=PATIENCE) as client:
            yield client
            process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                _, told = await process.communicate()
        assert (process.returncode, b"Traceback" in told) == (0, False), told.decode()
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def test_a_server_that_is_told_to_end_under_load_ends_in_order_and_learns_on_when_it_is_back(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=12, full=60)
    (home / "hone.toml").write_text("[learning]\nturns = 1\n")
    answered: list[tuple[int, str]] = []
    enough = asyncio.Event()
    over = 0

    async def go_on(client: httpx2.AsyncClient, number: int) -> None:
        """Every third one never comes to an end by itself."""
        nonlocal over
        try:
            for turn in range(1_000):
                words = f"canary-{number}-{turn}" + (f" {FOREVER}" if number % 3 == 0 and turn else "")
                assert await ask(client, f"talk-{number}", words) == f"Done: {words}"
                answered.append((number, words))
                if len(answered) >= 2 * count:
                    enough.set()
        except (httpx2.HTTPError, AssertionError):
            over += 1

    async with FakeProvider(busy, latency=0.02) as stage:
        async with serving(home, tmp_path, stage) as client:
            talks = [asyncio.create_task(go_on(client, number)) for number in range(count)]
            await enough.wait()
        await asyncio.wait(talks)
        assert over == count
        async with furnish(home, tmp_path, provider("openai", stage.url)) as hone:
            kept: dict[str, list[str]] = {}
            for each in await hone.sessions.list():
                said = list((await hone.sessions.load(each.header.id)).transcript)
                assert faults(said) == []
                number = CANARY.findall(each.opening)[0]
                kept[number] = [message.text for message in said]
            lost = [words for number, words in answered if f"Done: {words}" not in kept[f"canary-{number}-"]]
            assert lost == []
            queued = len(await hone.jobs.waiting())
            broken = sum("interrupted" in texts[-1] or "no answer" in texts[-1] for texts in kept.values())
        async with serving(home, tmp_path, stage) as client:
            await done(client)
        assert stage.invalid == []
    async with furnish(home, tmp_path) as hone:
        states = [job.state for job in await hone.jobs.jobs()]
        assert set(states) == {State.DONE}
    figures(
        f"{count} conversations under way at SIGTERM, {len(answered)} turns answered before it: 0 lost, "
        f"{broken} turns ended as interrupted, 0 invalid; {queued} reviews left, all done after the restart"
    )


def find_processes(mark: str) -> list[str]:
    """Return the command lines of processes that have this word in them."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in found if mark in line.split()]


async def test_a_server_that_is_told_to_end_leaves_no_command_running_and_keeps_what_was_said(
    home: Path, tmp_path: Path
) -> None:
    mark = f"4{os.getpid()}.5"
    (home / "hone.toml").write_text('mode = "full"\n')

    def run(messages: Sequence[Message]) -> Message:
        return assistant(call("terminal", command=f"sleep {mark} & sleep {mark}"))

    async with FakeProvider(run) as stage:
        async with serving(home, tmp_path, stage) as client:
            talk = asyncio.create_task(ask(client, "talk", "Work."))
            async with asyncio.timeout(PATIENCE):
                await until(lambda: bool(find_processes(mark)))
            assert not talk.done()
        with pytest.raises((httpx2.HTTPError, AssertionError)):
            await talk
    assert find_processes(mark) == []
    async with furnish(home, tmp_path) as hone:
        [found] = await hone.sessions.list()
        said = list((await hone.sessions.load(found.header.id)).transcript)
        assert (said[0].text, faults(said)) == ("Work.", [])


async def done(client: httpx2.AsyncClient) -> None:
    """Returns when every review is."""
    while True:
        mark = (await client.get("/api/status")).json()["mark"]
        found = (await client.get("/api/reviews", params={"limit": 500})).json()["reviews"]
        if {each["state"] for each in found} == {"done"}:
            return
        await listen(client, "/api/events", "reviews", since=mark)


async def test_what_is_changed_through_the_server_says_so_and_what_is_changed_elsewhere_does_not(
    home: Path, tmp_path: Path
) -> None:
    """E7: `platform`, also in what an undo of another program leaves."""
    async with FakeProvider(rounds("Yes.")) as stage, serving(home, tmp_path, stage) as client:
        added = await client.post(
            "/api/journal/user", json={"edits": [{"action": "add", "text": "Likes tea."}]}
        )
        assert added.is_success, added.text
    async with Hone(home=home) as hone:
        [made] = await hone.ledger.entries()
        undone = await hone.keeper.undo(made.id)
        platforms = [metadata(each.change.author)["platform"] for each in (made, undone)]
    assert platforms == ["serve", "cli"]
