"""A model on this machine: how it gets here, how it is served, and that its prefix cache is real."""

import asyncio
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import pytest

from hone.core.agent import Agent, Limits
from hone.core.clock import ManualClock, SystemClock
from hone.core.errors import Refused, Rejected, SettingsError
from hone.core.messages import answer, assistant, user
from hone.core.model import Model, Reply, Usage
from hone.core.permit import REVIEW, USER, Effect
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.tool import NoGuard
from hone.core.turn import Origin, Stop
from hone.core.value import replace
from hone.features.local_models.local import Local
from hone.features.local_models.weights import ENGINE, SMOLLM2, ModelCache, ModelFiles, Weights
from hone.models.fetching import Package, command, fetch_with, installer
from hone.models.scripted import call
from hone.models.wrappers import Retrying
from hone.runtime.session import Session, SessionDeps, new_id
from hone.tools.define import tool
from tests.conftest import Figures
from tests.given import NOON, transcript
from tests.models.wheels import ENGINE as MADE_UP
from tests.models.wheels import only, wheel
from tests.processes import has_ended
from tests.reference.sessions import InMemorySessions

GGUF = "toy_weights/toy.gguf"
TOY = Weights(
    "toy",
    "Toy",
    "MIT",
    Package("toy-weights", "1.0"),
    GGUF,
    hashlib.sha256(b"weights").hexdigest(),
    len(b"weights"),
    4_096,
)
PREFIX = Prefix("local/toy", "You are a test.")


def base_pip() -> list[str]:
    """The pip of the interpreter that our environment was made from."""
    found = shutil.which("python3", path=str(Path(os.path.realpath(sys.executable)).parent))
    if (
        found
        and subprocess.run([found, "-m", "pip", "--version"], capture_output=True, check=False).returncode
    ):
        found = None
    return [found, "-m", "pip", "install"] if found else pytest.skip("there is no pip")


def uv() -> list[str]:
    return installer(f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", pip=False)


@pytest.fixture(params=["pip", "uv"])
def tool_at_hand(request: pytest.FixtureRequest) -> list[str]:
    return base_pip() if request.param == "pip" else uv()


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, value in only(tmp_path / "index").items():
        monkeypatch.setenv(name, value)
    return tmp_path / "index"


def test_a_wheel_is_unpacked_without_what_it_depends_on(
    index: Path, tmp_path: Path, tool_at_hand: list[str]
) -> None:
    wheel(index, "toy-weights", "1.0", {GGUF: b"weights"}, needs="takes-an-hour-to-compile")
    fetch_with(tool_at_hand, TOY.package, tmp_path / "into")
    assert (tmp_path / "into" / GGUF).read_bytes() == b"weights"


def test_a_wheel_with_another_hash_is_refused(index: Path, tmp_path: Path, tool_at_hand: list[str]) -> None:
    made = wheel(index, "toy-engine", "2.0", {"toy_engine.py": b""})
    right, wrong = hashlib.sha256(made.read_bytes()).hexdigest(), "0" * 64
    with pytest.raises(
        Refused, match=r"toy-engine 2\.0 could not be fetched; nothing was added\.\n(.|\n)*(?i:hash)"
    ):
        fetch_with(tool_at_hand, Package("toy-engine", "2.0", (wrong,)), tmp_path / "wrong")
    fetch_with(tool_at_hand, Package("toy-engine", "2.0", (wrong, right)), tmp_path / "right")
    assert not (tmp_path / "wrong" / "toy_engine.py").exists()
    assert (tmp_path / "right" / "toy_engine.py").exists()


def test_a_package_that_cannot_be_had_is_told_in_the_words_of_the_installer(
    index: Path, tmp_path: Path, tool_at_hand: list[str]
) -> None:
    with pytest.raises(Refused, match=r"nothing was added\.\n  .*(?i:error)"):
        fetch_with(tool_at_hand, TOY.package, tmp_path / "into")


def test_a_package_that_only_has_sources_is_not_built(
    index: Path, tmp_path: Path, tool_at_hand: list[str]
) -> None:
    mark = tmp_path / "built"
    source = tmp_path / "toy_weights-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(mark)!r}, 'w')\n")
    (source / "PKG-INFO").write_text("Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\n")
    shutil.make_archive(str(index / source.name), "gztar", tmp_path, source.name)
    with pytest.raises(Refused):
        fetch_with(tool_at_hand, TOY.package, tmp_path / "into")
    assert not mark.exists()


def test_without_pip_and_uv_the_way_to_get_one_is_told(tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"Neither pip nor uv is here to fetch it with.*ensurepip"):
        installer(str(tmp_path), pip=False)
    assert installer(str(tmp_path), pip=True)[:3] == [sys.executable, "-m", "pip"]


def test_hashes_are_asked_for_where_there_are_some(tmp_path: Path) -> None:
    plain = command(["pip"], tmp_path / "wanted.txt", tmp_path, hashed=False)
    assert {"--no-deps", "--only-binary", "--target"} <= set(plain)
    assert set(command(["pip"], tmp_path / "wanted.txt", tmp_path, hashed=True)) - set(plain) == {
        "--require-hashes"
    }
    assert ENGINE.requirement.count("--hash=sha256:") == len(set(ENGINE.hashes)) > 0


@pytest.mark.parametrize("files", [{GGUF: b"something else"}, {"toy_weights/other.gguf": b"weights"}])
def test_weights_that_are_not_the_known_ones_are_refused_and_leave_nothing(
    files: dict[str, bytes], index: Path, tmp_path: Path
) -> None:
    wheel(index, "toy-weights", "1.0", files)
    cache = ModelCache(tmp_path / "models", {"toy": TOY})
    with pytest.raises(Refused, match="does not have in it what was expected"):
        cache.add(TOY)
    assert list(cache.folder.iterdir()) == []


def test_weights_are_added_found_and_removed_with_the_engine(index: Path, tmp_path: Path) -> None:
    wheel(index, "toy-weights", "1.0", {GGUF: b"weights", "toy_weights/__init__.py": b"raise SystemExit"})
    cache = ModelCache(tmp_path / "home" / "models", {"toy": TOY})
    with pytest.raises(SettingsError, match=r"Add it with: hone models add toy"):
        cache.ready("toy")
    cache.add(TOY)
    cache.engine.mkdir()
    assert cache.ready("toy") == ModelFiles(cache.folder / "toy" / "toy.gguf", 4_096, cache.engine)
    assert [path.name for path in (cache.folder / "toy").iterdir()] == ["toy.gguf"]
    assert (cache.folder.parent.stat().st_mode & 0o077, cache.folder.stat().st_mode & 0o077) == (0, 0)
    assert cache.remove(TOY)
    assert not cache.remove(TOY)
    assert list(cache.folder.iterdir()) == []


def test_weights_cut_short_are_fetched_again(index: Path, tmp_path: Path) -> None:
    wheel(index, "toy-weights", "1.0", {GGUF: b"weights"})
    cache = ModelCache(tmp_path / "models", {"toy": TOY})
    cache.add(TOY)
    cache.place(TOY).write_bytes(b"wei")
    assert not cache.holds(TOY)
    cache.add(TOY)
    assert cache.holds(TOY)


def test_a_full_disk_and_a_closed_home_are_told_before_anything_is_fetched(tmp_path: Path) -> None:
    def never(package: Package, into: Path) -> None:
        raise AssertionError(f"{package} was fetched into {into}")

    cache = ModelCache(tmp_path / "not" / "yet" / "models", fetch=never)
    with pytest.raises(Refused, match=rf"for a moment, and {tmp_path} has [\d,]+ MB left"):
        cache.require_room(10**18)
    cache.require_room(1)
    (tmp_path / "file").touch()
    with pytest.raises(Refused, match="cannot be written"):
        ModelCache(tmp_path / "file" / "models", fetch=never).add(SMOLLM2)


def made_up(folder: Path, weights: str = "weights") -> ModelFiles:
    (folder / "engine").mkdir()
    (folder / "engine" / "xllamacpp.py").write_text(MADE_UP, "utf-8")
    (folder / "toy.gguf").write_text(weights)
    return ModelFiles(folder / "toy.gguf", 4_096, folder / "engine")


@asynccontextmanager
async def served(stock: ModelFiles) -> AsyncIterator[Local]:
    local = Local(stock, SystemClock())
    try:
        yield local
    finally:
        await local.close()


async def ask(model: Model, prefix: Prefix, *said: str) -> Reply:
    conversation = transcript(prefix, [user(each) for each in said])
    async with aclosing(model.stream(prefix, conversation)) as pieces:
        *_, last = [piece async for piece in pieces]
    assert isinstance(last, Reply)
    return last


async def test_the_engine_is_a_process_of_its_own_that_gets_no_key_and_ends_with_close(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")
    async with served(made_up(tmp_path)) as local:
        assert local.pid is None
        reply = await ask(local, PREFIX, "hi")
        again = await ask(local, PREFIX, "hi")
        pid = local.pid
    assert pid is not None
    said = json.loads(reply.message.text)
    assert (said["window"], said["slots"], said["threads"], said["sid"]) == (4_096, 1, 1, pid)
    assert "SOME_API_KEY" not in said["environ"]
    assert reply.usage == Usage(9, 8)
    assert again.message == reply.message
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_an_engine_that_was_killed_is_started_again(tmp_path: Path) -> None:
    async with served(made_up(tmp_path)) as local:
        patient = Retrying(local, ManualClock())
        await ask(patient, PREFIX, "hi")
        first = local.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await ask(patient, PREFIX, "hi")
        assert local.pid not in (None, first)


async def test_many_at_once_share_one_engine(tmp_path: Path) -> None:
    async with served(made_up(tmp_path)) as local:
        replies = await asyncio.gather(*(ask(local, PREFIX, f"hi {number}") for number in range(10)))
    assert len({json.loads(reply.message.text)["sid"] for reply in replies}) == 1


async def test_an_engine_that_cannot_start_says_why(tmp_path: Path) -> None:
    async with served(made_up(tmp_path, weights="damaged")) as local:
        with pytest.raises(Rejected, match="did not start: RuntimeError: failed to load the model"):
            await ask(local, PREFIX, "hi")
    async with served(ModelFiles(tmp_path / "toy.gguf", 4_096, tmp_path / "absent")) as local:
        with pytest.raises(Rejected, match="did not start: ModuleNotFoundError: No module named 'xllamacpp'"):
            await ask(local, PREFIX, "hi")


ORPHAN = """
import asyncio, sys
from pathlib import Path
from hone.core.clock import SystemClock
from hone.features.local_models.local import Local
from hone.features.local_models.weights import ModelFiles
async def main():
    local = Local(ModelFiles(Path(sys.argv[1]), 4096, Path(sys.argv[2])), SystemClock())
    await local._serving()
    print(local.pid, flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_the_engine_dies_with_a_hone_that_is_killed(tmp_path: Path) -> None:
    stock = made_up(tmp_path)
    hone = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", ORPHAN, str(stock.weights), str(stock.engine)), stdout=asyncio.subprocess.PIPE
    )
    assert hone.stdout is not None
    pid = int(await hone.stdout.readline())
    os.kill(pid, 0)
    hone.kill()
    await hone.wait()
    assert await asyncio.to_thread(has_ended, pid)


@tool(effects={Effect.READ})
def look(path: str) -> str:
    """Read a file."""
    return f"{path}: 3 lines"


@tool(effects={Effect.NOTE})
def note(text: str) -> str:
    """Keep a sentence for later."""
    return f"kept: {text}"


RULES = (
    "You are a careful assistant in a small workshop. Answer in one short sentence. The workshop repairs "
    "clocks, scales and music boxes; it opens at nine and closes at five, and on Fridays it closes at noon. "
    "Orders are written into a book with a number, a name, a date and what is broken. Parts are kept in "
    "drawers with letters. What is done is oiled, tested for a day and wrapped."
)
CALL = call("look", path="orders.txt")
SAID = [
    user("How long is the book?"),
    assistant(CALL),
    answer(CALL, "orders.txt: 3 lines"),
    assistant("It has 3 lines."),
]


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> ModelFiles:
    cache = ModelCache(tmp_path_factory.mktemp("cache") / "models")
    try:
        cache.add_engine()
        cache.add(SMOLLM2)
    except Refused as refused:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(str(refused))
    return cache.ready("smollm2")


async def begun(local: Local) -> Session:
    """A conversation in the middle, in which a tool was used."""
    schemas, sampling = (look.spec.schema, note.spec.schema), '{"max_tokens":24,"temperature":0}'
    prefix = Prefix("local/smollm2", RULES, schemas, sampling)
    agent = Agent(prefix, local, {"look": look, "note": note}, USER, Limits(calls=8))
    store, header = InMemorySessions(), Header(new_id(), NOON)
    before = transcript(prefix, SAID)
    await store.start(header, prefix, before.nodes)
    services = SessionDeps(store, SystemClock(), guard=NoGuard)
    return Session(header, agent, before, services, stored=True)


async def review(session: Session) -> Usage:
    """What the first request of a fork took."""
    turn = await session.fork(REVIEW, Origin.REVIEW, Limits(calls=1)).send("What did you learn?")
    return turn.usage[0]


@pytest.mark.long
async def test_a_fork_is_warm_on_a_real_engine_and_cold_after_one_changed_word(
    real: ModelFiles, figures: Figures
) -> None:
    async with served(real) as local:
        parent = await begun(local)
        turn = await parent.send("When do you close on Fridays?")
        warm = await review(parent)
        changed = replace(parent.agent.prefix, system=RULES.replace("You", "Thou", 1))
        await parent.switch(replace(parent.agent, prefix=changed))
        cold = await review(parent)
    first, last = turn.usage[0], turn.usage[-1]
    figures(
        f"the parent's last prompt: {last.input} tokens; its fork: {warm.cached} of {warm.input} from the "
        f"cache; the same with one word changed: {cold.cached} of {cold.input}"
    )
    assert turn.stop is Stop.ANSWERED
    assert first.cached == 0
    assert 250 < last.input < 600, "the tools are in the prompt, and it is a short one"
    assert warm.cached >= 0.99 * last.input
    assert cold.cached < 0.05 * last.input
