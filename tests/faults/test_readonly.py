"""F1, F6: a home that cannot be written is opened read-only: it shows what it holds, and claims no change."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import apsw
import pytest

from hone.core.ids import SessionId
from hone.core.messages import user
from hone.core.trust import Trust
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import echo
from hone.stores.home import FILE, Stores, open_stores
from tests.faults.beside import ROOT
from tests.given import NOON
from tests.golden import Ended, environment, placed, unpack

FIXTURES = ROOT / "tests" / "fixtures"
GOLDEN = FIXTURES / "home-beec753" / "data"
SESSION = SessionId("a0e209aede")
READS = {
    "sessions.json": ("sessions", "list", "--all", "--json"),
    "session-queued.json": ("sessions", "export", SESSION, "--format", "json"),
    "memory.json": ("memory", "show", "--project", "/srv/project", "--json"),
    "skills.json": ("skills", "list", "--json"),
    "log.json": ("log", "--json", "-n", "100"),
    "pending.json": ("pending", "--json"),
    "reviews.json": ("reviews", "--json"),
}
WRITES = (
    ("sessions", "delete", SESSION, "--yes"),
    ("sessions", "rename", SESSION, "Another", "name"),
    ("sessions", "branch", SESSION),
    ("memory", "add", "Likes tea."),
    ("approve", "8", "--yes"),
    ("undo", "3"),
    ("forget", SESSION, "--yes"),
    ("reviews", "cancel", "2"),
    ("worker", "--once"),
)


def older(home: Path) -> None:
    """As an older Hone left it: its tables cannot be brought up to date in place."""


def current(home: Path) -> None:
    with _database(home) as connection:
        assert connection.execute("SELECT count(*) FROM sessions").get


def without_index(home: Path) -> None:
    """As a copy of the folder may be: SQLite cannot read the log without its index, nor make one here."""
    current(home)
    (home / f"{FILE}-shm").unlink()


def without_log(home: Path) -> None:
    current(home)
    with _database(home) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    for suffix in ("-wal", "-shm"):
        (home / f"{FILE}{suffix}").unlink(missing_ok=True)


def close_folder(home: Path) -> None:
    for path in home.rglob("*"):
        path.chmod(0o777 if path.is_dir() else 0o666)
    home.chmod(0o555)


def close_file(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    (home / FILE).chmod(0o444)


def close_both(home: Path) -> None:
    for path in (home, *home.rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)


LAYOUTS = (
    (older, close_file),
    (older, close_both),
    (current, close_folder),
    (current, close_file),
    (without_index, close_folder),
    (without_log, close_both),
)


@contextmanager
def _database(home: Path) -> Iterator[apsw.Connection]:
    stores = open_stores(home)  # brings the tables up to date
    assert not stores.closed
    connection = apsw.Connection(str(home / FILE))
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    try:
        yield connection
    finally:
        connection.close()


def digests(home: Path) -> dict[str, str]:
    """All files with their contents, except the index of the log, which holds the marks of readers."""
    files = (path for path in sorted(home.rglob("*")) if path.is_file() and not path.name.endswith("-shm"))
    return {str(path.relative_to(home)): sha256(path.read_bytes()).hexdigest() for path in files}


class Reader:
    """An ordinary user in front of a home."""

    def __init__(self, home: Path, folder: Path, *, url: str = "") -> None:
        env = environment(home, HONE_MODEL="openai/scripted", OPENAI_BASE_URL=url, OPENAI_API_KEY="sk-test")
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.faults.readonly_worker"],
            env=env | {"PYTHONPATH": path, "TMPDIR": str(folder)},
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hone(self, *arguments: str) -> Ended:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(f"{json.dumps(arguments)}\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


class Place:
    """A home and a working folder that everybody can enter, unlike tmp_path."""

    def __init__(self, root: Path) -> None:
        self.home, self.folder = root / "home", root / "work"
        self.home.mkdir(mode=0o755)
        self.folder.mkdir()
        self.folder.chmod(0o777)
        unpack(FIXTURES / "home-beec753.tar.gz", self.home)
        self._readers: list[Reader] = []

    def read(self, url: str = "") -> Reader:
        self._readers.append(Reader(self.home, self.folder, url=url))
        return self._readers[-1]

    @property
    def notice(self) -> str:
        return f"{self.home} is read-only: new messages are not kept, and nothing is learned."

    def close(self) -> None:
        for reader in self._readers:
            reader.close()
        for path in (self.home, *self.home.rglob("*")):
            path.chmod(0o700 if path.is_dir() else 0o600)


@pytest.fixture
def place() -> Iterator[Place]:
    with TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        place = Place(Path(name))
        try:
            yield place
        finally:
            place.home.chmod(0o700)
            place.close()


@pytest.mark.rights
@pytest.mark.parametrize(("prepare", "close"), LAYOUTS)
def test_a_read_only_home_shows_all_it_holds_and_says_so_in_one_line(
    place: Place, prepare: Callable[[Path], None], close: Callable[[Path], None]
) -> None:
    prepare(place.home)
    close(place.home)
    before, reader = digests(place.home), place.read()
    for name, command in READS.items():
        shown = reader.hone(*command)
        out = placed(shown.out, {"home": place.home, "folder": place.folder})
        assert (out, shown.code) == ((GOLDEN / name).read_text(), 0), name
        assert shown.err.splitlines() == [place.notice]
    found = reader.hone("sessions", "search", "months")
    assert found.code == 0
    assert SESSION in found.out
    assert digests(place.home) == before
    assert list(place.folder.iterdir()) == []


@pytest.mark.rights
@pytest.mark.parametrize("prepare", [older, current])
def test_nothing_is_claimed_to_be_changed_in_a_read_only_home(
    place: Place, prepare: Callable[[Path], None]
) -> None:
    prepare(place.home)
    close_file(place.home)
    before, reader = digests(place.home), place.read()
    for command in WRITES:
        ended = reader.hone(*command)
        assert ended.code == 1, (command, ended)
        assert "read-only" in ended.err.splitlines()[-1]
        assert not any(word in ended.out for word in ("Deleted", "is now", "approved", "cancelled")), ended
    assert digests(place.home) == before
    assert reader.hone(*READS["sessions.json"]).out == (GOLDEN / "sessions.json").read_text()


@pytest.mark.rights
async def test_a_chat_in_a_read_only_home_knows_its_past_and_keeps_nothing(place: Place) -> None:
    current(place.home)
    close_folder(place.home)
    before = digests(place.home)
    async with FakeProvider(echo) as provider:
        reader = place.read(f"{provider.url}/v1")
        command = ("--model", "openai/scripted", "run", "--resume", SESSION, "and now?")
        ended = await asyncio.to_thread(reader.hone, *command)
    assert ended.code == 0
    assert "and now?" in ended.out
    assert ended.err.count(place.notice) == 1
    assert b"How many months" in provider.bodies[-1]
    assert len(provider.bodies) == 1  # a review is queued in this home, and none is tried
    assert digests(place.home) == before


@pytest.mark.rights
@pytest.mark.parametrize("mode", [0o000, 0o311])
def test_a_home_that_cannot_be_read_is_an_error_and_never_empty(place: Place, mode: int) -> None:
    (place.home / FILE).chmod(0o000)
    place.home.chmod(mode)
    reader = place.read()
    for command in READS.values():
        ended = reader.hone(*command)
        assert (bool(ended.code), ended.out) == (True, "")
        assert ended.err.count("Permission denied") == 1


def texts(stores_of: Reader) -> list[str]:
    shown = stores_of.hone("sessions", "export", SESSION, "--format", "json")
    assert shown.code == 0, shown
    said: Sequence[dict[str, str]] = json.loads(shown.out)["messages"]
    return [json.dumps(each) for each in said]


async def _say(stores: Stores, words: str) -> None:
    stored = await stores.sessions.load(SESSION)
    longer = stored.transcript.then(user(words), Trust.OWNER, NOON)
    await stores.sessions.append(SESSION, longer.nodes[-1:])


@pytest.mark.rights
async def test_what_a_live_writer_has_acknowledged_is_seen_by_readers_at_once(place: Place) -> None:
    stores = open_stores(place.home)
    try:
        close_folder(place.home)
        reader = place.read()
        for number in range(5):
            words = f"canary {number}"
            await _say(stores, words)
            assert words in texts(reader)[-1]
    finally:
        await stores.close()


@pytest.mark.rights
@pytest.mark.parametrize("lost", [(), ("-shm",)])
async def test_messages_that_are_only_in_the_log_are_never_missed(place: Place, lost: Sequence[str]) -> None:
    stores = open_stores(place.home)
    await _say(stores, "canary")
    await stores.close()
    assert b"canary" not in (place.home / FILE).read_bytes()
    for suffix in lost:
        os.unlink(f"{place.home / FILE}{suffix}")
    close_both(place.home)
    assert "canary" in texts(place.read())[-1]
