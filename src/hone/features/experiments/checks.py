"""Whether a run did what was asked: the owner's check, which the run cannot reach."""

from pathlib import Path

from hone.core.clock import Clock
from hone.core.errors import Refused
from hone.features.experiments.values import Check
from hone.sandbox.choice import Sandbox
from hone.sandbox.process import CANNOT
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace

PATIENCE = 120.0
"""Seconds for a script."""
LARGEST = 4 * 2**20
"""Bytes of a file that is looked at."""
_UNSTARTED = (CANNOT, 126, 127)


async def holds(check: Check, answer: str, folder: Path, sandbox: Sandbox, clock: Clock) -> bool:
    """Raises Refused if a script cannot be run at all, which says nothing about what it should check."""
    if check.text and check.text.casefold() not in answer.casefold():
        return False
    if not all(_has(folder, path, words) for path, words in check.files):
        return False
    return not check.script or await _passes(check.script, answer, folder, sandbox, clock)


def _has(folder: Path, path: str, words: str) -> bool:
    """A link that leads out of the folder is no file of it."""
    try:
        real = (folder / path).resolve(strict=True)
        if not real.is_relative_to(folder.resolve()) or not real.is_file():
            return False
        with open(real, "rb") as file:
            return words in file.read(LARGEST).decode("utf-8", "replace")
    except (OSError, RuntimeError, ValueError):
        return False


async def _passes(script: str, answer: str, folder: Path, sandbox: Sandbox, clock: Clock) -> bool:
    """In a cell of its own: it may run what the agent wrote. Its first argument is a file with the answer."""
    workspace = Workspace(folder, sandbox, clock)
    try:
        choice = await workspace.choice()
        if choice.missing(network=False):
            raise Refused("The check is a script, and no sandbox holds here; see hone doctor.")
        for name, text in (("check", script), ("answer", answer)):
            (workspace.scratch() / name).write_text(text, "utf-8")
        (workspace.scratch() / "check").chmod(0o700)
        tmp = workspace.launch([], choice).tmp
        interpreter = () if script.startswith("#!") else ("/bin/sh",)
        launch = workspace.launch([*interpreter, f"{tmp}/check", f"{tmp}/answer"], choice)
        ended = await workspace.run(launch, "output", PATIENCE)
    except (OSError, ValueError, SandboxUnavailable) as error:
        raise Refused(f"The check could not be run: {error}.") from error
    finally:
        await workspace.close()
    if ended.code in _UNSTARTED and not ended.timed_out:
        raise Refused(f"The check could not be run (exit code {ended.code}): {ended.output.strip()[-300:]}")
    return ended.code == 0 and not ended.timed_out
