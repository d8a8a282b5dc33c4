"""A file in the editor of the user's choice."""

import os
import shlex
import subprocess
from pathlib import Path

from hone.core.errors import HoneError, SettingsError


def edit(file: Path) -> None:
    """Comes back when the editor is closed. Raises HoneError if it cannot be started or has failed."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        raise SettingsError(f"No editor is named. Set EDITOR, or open {file} yourself.")
    try:
        code = subprocess.run([*editor, str(file)], check=False).returncode
    except OSError as error:
        raise SettingsError(f"The editor {editor[0]!r} cannot be started: {error.strerror}.") from error
    if code:
        raise HoneError(f"The editor ended with exit code {code}.")
