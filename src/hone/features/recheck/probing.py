"""Run a probe: a command of the owner's, in the sandbox, without network, with the folder read-only."""

from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.errors import Refused
from hone.sandbox.choice import Sandbox
from hone.sandbox.process import CANNOT
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace

PATIENCE = 60.0
"""Seconds."""
SHOWN = 2_000
"""The most characters of its output to keep."""
_UNKNOWN = (126, 127)
"""A shell's messages for a missing command, or one that cannot run. Silence is an answer: that is how
`command -v` says that a program is not there."""


class ProbeResult(Struct, frozen=True):
    """`succeeded`: it ended with exit code 0."""

    succeeded: bool
    code: int
    output: str


async def probe(command: str, folder: Path, home: Path, clock: Clock) -> ProbeResult:
    """Run a command. Raises Refused if it cannot be run, which says nothing about the entry."""
    workspace = Workspace(folder, Sandbox(hidden=(home,), clock=clock), clock)
    try:
        choice = await workspace.choice()
        if choice.missing(network=False):
            raise Refused("No sandbox holds here, so nothing was run. See: hone doctor")
        launch = workspace.launch(["/bin/sh", "-c", command], choice, read_only=True)
        ended = await workspace.run(launch, "output", PATIENCE)
    except (OSError, ValueError, SandboxUnavailable) as error:
        raise Refused(f"The command could not be run: {error}. Nothing was changed.") from error
    finally:
        await workspace.close()
    output = ended.output.strip()[-SHOWN:]
    if ended.timed_out:
        raise Refused(f"The command took more than {PATIENCE:.0f} seconds. Nothing was changed.")
    if ended.code == CANNOT or (ended.code in _UNKNOWN and output):
        raise Refused(f"The command could not be run: {output}\nNothing was changed.")
    return ProbeResult(ended.code == 0, ended.code, output)
