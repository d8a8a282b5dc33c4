"""Starts the worker beside the tests, on its own or where strace can reach into it."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from hone.models.fake_provider.shapes import Format

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("worker.py")
DATABASE = {f"hone.db{suffix}" for suffix in ("", "-wal", "-shm")}
BESIDE = {
    "checkpoints",
    "provenance",
    *(f"{name}.db{suffix}" for name in ("checkpoints", "provenance") for suffix in ("", "-wal", "-shm")),
}
"""What tools that change files keep in a home."""


async def start(
    home: Path,
    folder: Path,
    format: Format,
    url: str,
    *session: str,
    under: Sequence[str] = (),
    nobody: bool = False,
) -> Process:
    flags = ["--nobody"] if nobody else []
    command = [
        *under,
        sys.executable,
        "-W",
        "error",
        str(WORKER),
        *flags,
        str(home),
        str(folder),
        format,
        url,
    ]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    environ = os.environ | {"PYTHONPATH": path}
    return await asyncio.create_subprocess_exec(*command, *session, stdin=PIPE, stdout=PIPE, env=environ)


async def hear(process: Process) -> str:
    assert process.stdout
    return (await process.stdout.readline()).decode().rstrip("\n")


async def tell(process: Process, words: str) -> None:
    assert process.stdin
    process.stdin.write(f"{words}\n".encode())
    await process.stdin.drain()


async def rest(process: Process, *words: str) -> list[str]:
    """Says all the words, and gives what comes back until the end."""
    said, _ = await process.communicate("".join(f"{each}\n" for each in words).encode())
    return said.decode().splitlines()


def integrity(home: Path) -> str:
    """SQLite's own opinion of the database."""
    if not (home / "hone.db").exists():
        return "ok"
    with closing(apsw.Connection(str(home / "hone.db"))) as connection:
        return str(connection.pragma("integrity_check"))
