"""What is acknowledged is on the disk by then: the order of a process's system calls, as strace saw it."""

import asyncio
import os
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

from hone.models.fake_provider import FakeProvider
from hone.models.scripted import lines
from tests.conftest import requires
from tests.faults import knowledge_worker
from tests.faults import worker as turn_worker
from tests.faults.beside import ROOT
from tests.faults.knowledge_worker import furnished, kept
from tests.stores import worker as store_worker

CALLS = "trace=pwrite64,fdatasync,fsync,write,writev,sendto,/^rename"
LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(.*)")


async def watched(folder: Path, script: object, *arguments: str, heard: bytes = b"\n") -> list[str]:
    """What a process calls, each call twice: where it begins and where it has ended."""
    log = folder / "calls"
    under = [requires("strace"), "-f", "-qq", "-y", "-s", "100000", "-o", str(log), "-e", CALLS]
    command = [*under, sys.executable, "-W", "error", str(script), *arguments]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = os.environ | {"PYTHONPATH": path}
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, env=environ)
    await process.communicate(heard)
    assert process.returncode == 0
    return list(halves(log.read_text(errors="replace")))


def halves(log: str) -> Iterator[str]:
    open_calls: dict[str, str] = {}
    for match in filter(None, map(LINE.match, log.splitlines())):
        thread, name, rest = match.groups()
        if "resumed>" in rest:
            yield f"ended {name}{open_calls.pop(thread)}"
            continue
        yield f"begun {name}{rest}"
        if rest.endswith("<unfinished ...>"):
            open_calls[thread] = rest
        else:
            yield f"ended {name}{rest}"


def early(calls: list[str], said: str) -> tuple[int, list[str]]:
    """How often something was said, and where by then a write to the log of the database was not yet on the
    disk, or there had been none."""
    told, wrong, written, safe = 0, list[str](), False, False
    for call in calls:
        if call.startswith("begun pwrite64(") and "hone.db-wal>" in call:
            written, safe = True, False
        elif call.startswith("ended fdatasync(") and "hone.db-wal>" in call:
            safe = written
        elif re.match(said, call):
            told += 1
            wrong += [] if safe else [call[:200]]
            written = safe = False
    return told, wrong


def test_what_is_said_too_early_is_seen() -> None:
    log = "7 pwrite64(5</h/hone.db-wal>, ...) = 9\n7 fdatasync(5</h/hone.db-wal> <unfinished ...>\n"
    say, end = '8 write(1<pipe:[1]>, "first") = 5\n', "7 <... fdatasync resumed>) = 0\n"
    assert early(list(halves(log + end + say)), "begun write") == (1, [])
    for bad in (log + say + end, say, log + end + say + say, say + log + end):
        assert early(list(halves(bad)), "begun write")[1]


async def test_a_message_is_on_the_disk_before_the_store_says_so(tmp_path: Path) -> None:
    place = str(tmp_path / "hone.db")
    calls = await watched(tmp_path, store_worker.__file__, "own", place, "5e55", "word", "20")
    assert early(calls, r'begun write\(1<.*>, "(first|word \d+)') == (21, [])


async def test_the_users_words_are_on_the_disk_before_they_are_sent(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(lines("Fine.")) as stage:
        arguments = (str(home), str(tmp_path), "openai", stage.url)
        calls = await watched(tmp_path, turn_worker.__file__, *arguments, heard=b"a wish\nmore wishes\n")
    assert early(calls, r"begun sendto\(.*wish") == (2, [])
    assert early(calls, r'begun write\(1<.*>, "answered') == (2, [])


@pytest.mark.parametrize(("deed", "words"), [("add", ("tea", "1")), ("patch", ("done", "3"))])
async def test_a_change_is_recorded_before_it_is_printed_and_printed_before_it_is_acknowledged(
    home: Path, tmp_path: Path, deed: str, words: tuple[str, ...]
) -> None:
    async with kept(home) as keeper:
        await furnished(keeper)
    calls = await watched(tmp_path, knowledge_worker.__file__, deed, str(home), *words)
    assert early(calls, r"begun rename\w+\(.*\.tmp") == (1, [])
    ends = [call for call in calls if re.match(r"ended (rename\w+|fsync)|begun writev.*done", call)]
    renamed = next(at for at, call in enumerate(ends) if call.startswith("ended rename"))
    draft, folder, done = ends[renamed - 1], ends[renamed + 1], ends[-1]
    assert re.match(r"ended fsync\(\d+<.*\.tmp>", draft)
    assert re.match(r"ended fsync\(\d+<.*(?<!\.tmp)>", folder)
    assert done.startswith("begun writev")
