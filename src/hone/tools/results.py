"""How the end of a command is told to the model: what it said, how it ended, and what stood in its way."""

import signal

from hone.core.tool import Outcome
from hone.core.trust import Trust
from hone.sandbox.choice import NONE, SandboxChoice
from hone.sandbox.process import Ended


def told(
    ended: Ended, choice: SandboxChoice, timeout: float, *, network: bool, trust: Trust, place: str = ""
) -> Outcome:
    """`place` is where the shell stands now, if that changed."""
    failed = ended.timed_out or ended.code != 0
    facts = [_ending(ended, timeout), f"{ended.seconds:.1f} s"]
    if place:
        facts.append(f"now in {place}")
    if failed and choice.mode is not NONE:
        facts.append(walls(network=network))
    return Outcome(f"{_closed(ended.output)}[{'; '.join(facts)}]", failed, trust)


def walls(*, network: bool) -> str:
    reach = "" if network else ", no network"
    return f"in a sandbox: writes only in the working folder and $TMPDIR, files of others hidden{reach}"


def named(code: int) -> str:
    """An exit code, with the signal it stands for."""
    try:
        return f"exit code {code} ({signal.Signals(code - 128).name})" if code > 128 else f"exit code {code}"
    except ValueError:
        return f"exit code {code}"


def _ending(ended: Ended, timeout: float) -> str:
    if ended.timed_out:
        return f"stopped after {timeout:g} s, with everything it started"
    return named(ended.code)


def _closed(output: str) -> str:
    return output if not output or output.endswith("\n") else f"{output}\n"
