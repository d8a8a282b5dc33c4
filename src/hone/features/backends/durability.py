"""Try whether a memory outlives its writer: another process stores one and is killed."""

import asyncio
import os
import sys

from hone.app import Hone
from hone.core.errors import BackendError
from hone.features.backends.part import MemoryPart

PROBE = "hone-evaluation"
READY = "stored"
PATIENCE = 30.0
"""Seconds for a process that is to be killed to store something first."""


async def survives(hone: Hone, name: str) -> bool | None:
    """Whether a memory is there whose writer was killed as soon as it had said so; None if it never did."""
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
