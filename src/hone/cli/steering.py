"""List the hooks that count in a folder and those that wait for the owner's approval."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hone.core.errors import Refused
from hone.runtime.permissions.approval import HOOKS_FILE, FileApprovals
from hone.runtime.project_files import read_file
from hone.settings.sections import HookSettings


def describe_hooks(own: Sequence[HookSettings], folder: Path, approvals: FileApprovals) -> Iterator[str]:
    """Yield a line for each source of hooks; none if there are no hooks."""
    if own:
        yield f"hooks: {len(own)} in hone.toml"
    try:
        file = read_file(folder, HOOKS_FILE)
    except Refused as refusal:
        yield f"hooks: {refusal}"
        return
    if file and approvals.is_approved(folder, file):
        yield f"hooks: those of {HOOKS_FILE} are approved; hone hooks lists them"
    elif file:
        yield f"hooks: {approvals.explain(folder, file)}"
