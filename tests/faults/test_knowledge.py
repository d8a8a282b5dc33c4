"""C2, D3, F1: what was acknowledged is kept, by many processes at once, and on broken disks."""

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from stat import S_IMODE
from tempfile import TemporaryDirectory

import pytest

from hone.core.ledger import MEMORY, ChangeQuery, skill
from hone.core.skill import DOCUMENT
from hone.knowledge.journal import entries
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import lines
from hone.stores.database import Database
from hone.stores.ledger import SqliteLedger
from tests.cli import nobody
from tests.cli.driving import environment
from tests.conftest import Figures, Tier, requires
from tests.faults import knowledge_worker
from tests.faults.beside import DATABASE, ROOT, hear, integrity, rest, tell
from tests.faults.knowledge_worker import HEAD, NAME, TARGETS, furnished, kept


async def start(*arguments: str, under: Sequence[str] = (), nobody: bool = False) -> Process:
    flags = ["--nobody"] if nobody else []
    command = [*under, sys.executable, "-W", "error", knowledge_worker.__file__, *flags, *arguments]
    environ = os.environ | {"PYTHONPATH": str(ROOT)}
    return await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environ)


async def sound(home: Path) -> list[str]:
    """Why the ledger is not what it should be."""
    database = Database.open(home / "hone.db")
    try:
        found = list(await SqliteLedger(database).unsound())
    finally:
        await database.close()
    sane = integrity(home)
    return found if sane == "ok" else [*found, sane]


# Many processes at once


async def work(home: Path, deeds: Sequence[Sequence[str]]) -> list[list[str]]:
    """What each process says."""
    workers = await asyncio.gather(*(start(each[0], str(home), *each[1:]) for each in deeds))
    return list(await asyncio.gather(*(rest(worker) for worker in workers)))


@pytest.mark.parametrize(("processes", "full"), [(2, 200), (8, 100)])
async def test_every_entry_that_was_acknowledged_is_there(
    home: Path, processes: int, full: int, tier: Tier, figures: Figures
) -> None:
    count = tier.size(short=60 // processes, full=full)
    said = await work(home, [("add", f"process {number}, entry", str(count)) for number in range(processes)])
    acknowledged = [line.removeprefix("done ") for each in said for line in each]
    wanted = {f"process {name}, entry {number}" for name in range(processes) for number in range(count)}
    assert set(acknowledged) == wanted
    lying = entries((home / "MEMORY.md").read_text())
    async with kept(home) as keeper:
        assert (await keeper.text(MEMORY)).encode() == (home / "MEMORY.md").read_bytes()
        made = await keeper.ledger.entries(ChangeQuery(target=MEMORY))
    assert sorted(lying) == sorted(wanted)
    assert [each.change.kind for each in made] == ["add"] * len(wanted)
    assert await sound(home) == []
    assert {each.name for each in home.iterdir()} <= {*DATABASE, ".lock", "MEMORY.md"}
    figures(f"{processes} processes x {count} adds: {len(acknowledged)} acknowledged, 0 lost")


@pytest.mark.parametrize("wanted_by", [1, 2])
async def test_of_many_patches_at_once_none_is_silently_lost(
    home: Path, wanted_by: int, tier: Tier, figures: Figures
) -> None:
    """Each line is wanted by one process, or by two: then one of them is told that it came too late."""
    patches, processes = tier.size(short=40, full=200), 4
    number_of_lines = patches // wanted_by
    async with kept(home) as keeper:
        await furnished(keeper, number_of_lines)
    shares: list[list[str]] = [[] for _ in range(processes)]
    for line in range(number_of_lines):
        for copy in range(wanted_by):
            shares[(line + copy) % processes].append(str(line))
    said = await work(home, [("patch", f"by {name}", *share) for name, share in enumerate(shares)])
    done = [line.removeprefix("done ") for each in said for line in each if line.startswith("done ")]
    refused = [line for each in said for line in each if not line.startswith("done ")]
    assert (len(done), len(refused)) == (number_of_lines, patches - number_of_lines)
    assert all(line.startswith("Refused: The text to replace occurs nowhere") for line in refused), refused
    document = (home / "skills" / NAME / DOCUMENT).read_text()
    assert document == HEAD + "".join(f"{line}\n" for line in sorted(done))
    async with kept(home) as keeper:
        assert (await keeper.files(skill(NAME)))[DOCUMENT].decode() == document
    assert await sound(home) == []
    figures(f"{patches} patches by {processes} processes: {len(done)} done, {len(refused)} told no, 0 lost")


# What cannot be read or written


@pytest.fixture
def area() -> Iterator[Path]:
    """A folder that everybody may enter and write, unlike tmp_path."""
    with TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


def close(path: Path) -> None:
    path.chmod(0)


def garble(path: Path) -> None:
    path.write_bytes(b"---\nname: caf\xe9 \xff\n")


def link(path: Path) -> None:
    path.unlink()
    other = path.parents[-1] / "etc/hostname"
    path.symlink_to(other)


def enclose(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


ODD: dict[Callable[[Path], None], str] = {
    close: "is closed to you",
    garble: "UTF-8",
    link: "is a link, and Hone does not follow links there",
    enclose: "is a folder, and a file belongs there",
    pipe: "is a device, a pipe or a socket, and a file belongs there",
}


def look(path: Path) -> tuple[object, ...]:
    """All that an untouched file keeps."""
    status = os.lstat(path)
    content = inside(path, status.st_mode) if path.is_file() else None
    return status.st_ino, status.st_mode, status.st_mtime_ns, status.st_size, content


def inside(path: Path, mode: int) -> bytes:
    """Its owner, unlike root, has to open a closed file for a moment."""
    if os.access(path, os.R_OK):
        return path.read_bytes()
    path.chmod(0o400)
    try:
        return path.read_bytes()
    finally:
        path.chmod(S_IMODE(mode))


def mend(path: Path, good: bytes) -> None:
    if path.is_dir():
        path.rmdir()
    else:
        path.unlink()
    path.write_bytes(good)
    path.chmod(0o666)


@pytest.mark.rights
@pytest.mark.parametrize("spoil", ODD, ids=lambda each: each.__name__)
@pytest.mark.parametrize(("place", "order"), [("MEMORY.md", "an entry"), (f"skills/{NAME}/{DOCUMENT}", "3")])
async def test_a_file_that_cannot_be_used_is_said_and_left_and_all_is_well_once_it_is_mended(
    area: Path, spoil: Callable[[Path], None], place: str, order: str
) -> None:
    home = area / "home"
    home.mkdir()
    async with kept(home) as keeper:
        await furnished(keeper)
    for each in (home, *home.rglob("*")):
        each.chmod(0o777 if each.is_dir() else 0o666)
    path = home / place
    good = path.read_bytes()
    worker = await start("obey", str(home), nobody=True)
    await tell(worker, "")
    known = await hear(worker)
    spoil(path)
    before = look(path)
    await tell(worker, order)
    told = await hear(worker)
    assert told.startswith("StoreError: ")
    assert place.rpartition("/")[0] in told
    assert ODD[spoil] in told
    await tell(worker, "")
    assert await hear(worker) == known
    assert look(path) == before
    mend(path, good)
    *done, shown = await rest(worker, order, "")
    assert [each.partition(" ")[0] for each in done] == ["done"]
    assert shown != known
    assert path.read_bytes() != good
    async with kept(home) as keeper:
        assert repr([sorted((await keeper.files(target)).items()) for target in TARGETS]) == shown
    assert await sound(home) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
async def test_on_a_full_disk_an_entry_is_refused_or_kept_and_never_something_between(
    tmp_path: Path, figures: Figures
) -> None:
    worker = await start("fill", str(tmp_path), under=[requires("unshare"), "--mount"])
    said = await rest(worker)
    assert worker.returncode == 0
    rows = [said[at : at + 3] for at in range(0, len(said), 3)]
    count: Counter[str] = Counter()
    for told, heard, then in rows:
        done = told.startswith("done ")
        late = "It is recorded, but not printed yet" in heard
        count["done" if done and not late else "printed later" if done else "refused"] += 1
        assert done or ("StoreError: " in told and "no space left" in told), told
        files = sorted({*DATABASE, ".lock", "MEMORY.md", "USER.md", "skills"})
        assert then == f"  then: {'there' if done else 'absent'} same True {files}", (told, heard, then)
    assert min(count[each] for each in ("refused", "printed later", "done")) > 0, count
    figures(f"{len(rows)} entries on a full disk: {dict(count)}, 0 lost, 0 halves, 0 debris")


@pytest.mark.rights
async def test_with_a_read_only_home_the_chat_knows_the_journal_and_says_once_that_nothing_is_kept(
    area: Path,
) -> None:
    home = area / "home"
    home.mkdir()
    async with kept(home) as keeper:
        await furnished(keeper)
    for each in (home, *home.rglob("*")):
        each.chmod(0o555 if each.is_dir() else 0o444)
    before = {each: look(each) for each in home.rglob("*")}
    command = (sys.executable, "-m", nobody.__name__, "--home", str(home), "run", "hello")
    async with FakeProvider(lines("Good day.")) as stage:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=environment(home, stage, PYTHONPATH=str(ROOT)),
            cwd=area,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=PIPE,
        )
        out, err = (each.decode() for each in await process.communicate())
        assert (process.returncode, out) == (0, "Good day.\n"), err
        assert err.count("is read-only") == 1
        assert err.count("not kept") == 1
        [body] = stage.bodies
    for words in (b"- first", b"- Likes tea.", b"Plan a trip day by day."):
        assert words in body
    assert b"zebra" not in body
    assert {each: look(each) for each in home.rglob("*")} == before
