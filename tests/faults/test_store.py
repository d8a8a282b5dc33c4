"""F1: a home that cannot be written, a full disk, another process: said plainly, and nothing is lost."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hone import Hone
from hone.core.errors import StoreError
from hone.core.messages import Role, ToolCall, assistant
from hone.core.permit import Effect
from hone.core.tool import Outcome
from hone.core.turn import Stop
from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.shapes import Format
from hone.models.scripted import Scripted, call, echo, lines, rounds
from tests.conftest import Figures, Tier
from tests.faults.beside import hear, rest, start, tell
from tests.faults.furnish import furnish, provider
from tests.faults.house import FORMATS, unsound
from tests.rig import Puppet

SCRIPT = rounds(
    assistant("I look.", call("todo")),
    assistant("I read.", call("read_file", path="long.txt")),
    "Done.",
)
UNWRITABLE = "cannot be written: this conversation is not kept, and nothing is learned."
ELSEWHERE = "has gone on elsewhere in the meantime; this was not added. Load it again."
STORED = "What was said before is stored."


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may enter, unlike tmp_path."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.mark.rights
@pytest.mark.parametrize("format", FORMATS)
async def test_with_a_read_only_home_the_chat_goes_on_in_memory_and_says_so_once(
    format: Format, open_folder: Path
) -> None:
    home = open_folder / "home"
    home.mkdir(mode=0o555)
    async with FakeProvider(SCRIPT) as stage:
        worker = await start(home, open_folder, format, stage.url, nobody=True)
        _, *said = await rest(worker, "one", "two", "three")
        assert said == ["answered: Done."] * 3 + [f"notice: {home} {UNWRITABLE}"]
        assert b'"two"' in stage.bodies[-1]
        assert stage.invalid == []
    assert list(home.iterdir()) == []


@pytest.mark.rights
async def test_a_home_that_cannot_be_made_is_told_on_the_command_line_once(tmp_path: Path) -> None:
    home = "/proc/hone"
    async with FakeProvider(SCRIPT) as stage:
        environ = {"HONE_HOME": home, "OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{stage.url}/v1"}
        command = [sys.executable, "-m", "hone", "run", "--model", "openai/scripted", "do it"]
        process = await asyncio.create_subprocess_exec(
            *command, env=os.environ | environ, cwd=tmp_path, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        out, err = await process.communicate()
    assert (process.returncode, out.strip()) == (0, b"Done.")
    assert err.decode().count(f"{home} {UNWRITABLE}") == 1
    assert b"Traceback" not in err


async def test_a_conversation_whose_first_words_were_refused_goes_on(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise StoreError("The disk failed.")

    async with Hone(home=home, folder=tmp_path, model=Scripted(echo)) as hone:
        session = await hone.session()
        with monkeypatch.context() as patch:
            patch.setattr(hone.sessions, "start", refuse)
            with pytest.raises(StoreError):
                await session.send("one")
        turn = await session.send("two")
        assert turn.stop is Stop.ANSWERED
        stored = (await hone.sessions.load(session.id)).transcript
        assert [each.text for each in stored] == ["two", turn.text]


async def test_a_session_that_went_on_elsewhere_is_told_as_one_conflict(home: Path, tmp_path: Path) -> None:
    async with (
        FakeProvider(echo) as stage,
        furnish(home, tmp_path, provider("openai", stage.url)) as hone,
    ):
        worker = await start(home, tmp_path, "openai", stage.url)
        name = await hear(worker)
        await tell(worker, "theirs")
        assert (await hear(worker)).startswith("answered: ")
        session = await hone.resume(name)
        await session.send("mine")
        await tell(worker, "too late")
        assert await hear(worker) == f"Conflict: Session {name} {ELSEWHERE}"
        (said,) = await rest(worker, "once more")
        assert said.startswith("answered: ")
        stored = await hone.sessions.load(session.id)
        texts = [message.text for message in stored.transcript if message.role is Role.USER]
        assert texts == ["theirs", "mine", "once more"]


async def test_a_conflict_within_a_turn_ends_it_with_the_same_sentence(home: Path, tmp_path: Path) -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def wait(call: ToolCall) -> Outcome:
        begun.set()
        await over.wait()
        return Outcome("waited")

    script = rounds(assistant("I wait.", call("wait")), "Done.")
    tools = (Puppet("wait", frozenset({Effect.READ}), act=wait),)
    async with (
        FakeProvider(script) as mine,
        FakeProvider(lines("Hello.")) as theirs,
        furnish(home, tmp_path, provider("openai", mine.url), tools=tools) as hone,
    ):
        session = await hone.session()
        sending = asyncio.create_task(session.send("wait for it"))
        async with asyncio.timeout(60):
            await begun.wait()
        worker = await start(home, tmp_path, "openai", theirs.url, session.id)
        assert (await rest(worker, "go on without me"))[1] == "answered: Hello."
        over.set()
        turn = await sending
        assert (turn.stop, turn.error) == (Stop.FAILED, f"Session {session.id} {ELSEWHERE} {STORED}")
        again = await hone.resume(session.id)
        texts = [message.text for message in again.transcript if message.role is Role.USER]
        assert texts == ["wait for it", "go on without me"]
        assert await unsound("openai", hone, again) + mine.invalid + theirs.invalid == []


async def test_two_processes_in_one_session_lose_nothing_and_every_claim_about_it_is_true(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=20, full=200)
    async with FakeProvider(SCRIPT, keep=False) as stage:
        (tmp_path / "long.txt").write_text("short")
        async with furnish(home, tmp_path, provider("openai", stage.url)) as hone:
            session = await hone.session()
            await session.send("the first word")
        sent = [[f"{name} {number}" for number in range(count)] for name in ("left", "right")]
        workers = [await start(home, tmp_path, "openai", stage.url, session.id) for _ in sent]
        assert [await hear(each) for each in workers] == [session.id] * 2
        said = await asyncio.gather(*(rest(each, *words) for each, words in zip(workers, sent, strict=True)))
        ends = dict(zip(chain(*sent), chain(*said), strict=True))
        conflict = f"Session {session.id} {ELSEWHERE}"
        claims = {
            "answered: Done.": True,
            f"Conflict: {conflict}": False,
            f"failed: {conflict} {STORED}": True,
        }
        assert set(ends.values()) <= claims.keys()
        received = [words for words, end in ends.items() if claims[end]]
        async with furnish(home, tmp_path, provider("openai", stage.url)) as hone:
            again = await hone.resume(session.id)
            texts = [message.text for message in again.transcript if message.role is Role.USER]
            assert sorted(texts[1:]) == sorted(received)
            assert await unsound("openai", hone, again) + stage.invalid == []
    others = [end for end in ends.values() if end != "answered: Done."]
    assert others, "both began at the same word"
    within = sum(end.startswith("failed: ") for end in others)
    figures(
        f"two processes in one session: {2 * count} tried, {len(others)} conflicts told, "
        f"{within} of them within a turn, 0 claims wrong, 0 lost"
    )
