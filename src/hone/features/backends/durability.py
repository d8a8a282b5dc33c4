"""Test whether a memory outlives its writer: another process stores one and is killed."""

import asyncio
import os
import sys

from hone.app import Hone
from hone.core.errors import BackendError
from hone.features.backends.part import MemoryPart

PROBE = "hone-evaluation"
READY = "stored"
PATIENCE = 30.0
"""Seconds for a process to store something before it is killed."""


async def survives(hone: Hone, name: str) -> bool | None:
    """Tell whether a memory survives if its writer is killed as soon as it is acknowledged; None if it never
    was."""
    backend, key = hone.part(MemoryPart).backing.make(name), f"kill-{os.urandom(4).hex()}"
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "hone", "--home", str(hone.home), "backends", "probe", name, key),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        stdin=asyncio.subprocess.DEVNULL,
    )
    try:
        assert child.stdout is not None
        async with asyncio.timeout(PATIENCE):
            said = (await child.stdout.readline()).decode().strip()
    except TimeoutError:
        said = ""
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()
    if said != READY:
        return None
    try:
        kept = await backend.retrieve(PROBE, key)
        await backend.delete(PROBE, key)
    except BackendError:
        return False
    return kept is not None
