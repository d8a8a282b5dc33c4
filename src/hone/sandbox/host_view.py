"""What commands in one working folder see of the user's machine. It is computed once for a workspace, for all
of its commands."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from hone.core.sensitive import Place, secret_places, startup_places
from hone.sandbox.gitfiles import git_folders_outside
from hone.sandbox.identity import Identity, find_identity
from hone.sandbox.spec import SandboxAccess
from hone.sandbox.toolchains import Toolset, find_tools, secrets_in

_PASSED = {
    *("LANG", "LANGUAGE", "TZ", "NO_COLOR", "PYENV_VERSION", "RUSTUP_TOOLCHAIN", "CONDA_DEFAULT_ENV"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
}


class HostView(Struct, frozen=True):
    """`sealed` and `hidden` are places of the user's home inside what commands may write or read."""

    tools: Toolset
    identity: Identity
    access: SandboxAccess
    readable: tuple[Path, ...]
    sealed: tuple[Path, ...]
    hidden: tuple[Path, ...]
    env: tuple[tuple[str, str], ...]


def survey(
    folder: Path, access: SandboxAccess, closed: Sequence[Path], environ: Mapping[str, str]
) -> HostView:
    """Return the view. `closed` is Hone's home; no command sees it."""
    tools = find_tools(folder, closed, environ)
    readable = (*tools.shown, *access.read, *git_folders_outside(folder))
    written = (folder, *access.write)
    seen = (*written, *readable)
    home = Path(os.path.realpath(environ.get("HOME") or "/nonexistent"))
    masked = (*tools.masked, *(secret for path in access.read for secret in secrets_in(path)))
    return HostView(
        tools,
        find_identity(folder, environ),
        access,
        readable,
        tuple(_of_home(home, startup_places(), written)),
        tuple(dict.fromkeys((*_of_home(home, secret_places(), seen), *masked))),
        tuple(_environment(tools, access, environ).items()),
    )


def _of_home(home: Path, places: Iterable[Place], seen: Sequence[Path]) -> Iterator[Path]:
    """Yield the places inside what is seen. If a place itself is the working folder, the owner wants it."""
    for place in places:
        path = os.path.realpath(home.joinpath(*place))
        if os.path.exists(path) and any(path.startswith(f"{root}/") for root in seen):
            yield Path(path)


def _environment(tools: Toolset, access: SandboxAccess, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment: only the variables listed here, and those named in the owner's settings."""
    passed = {name: value for name, value in environ.items() if name in _PASSED or name.startswith("LC_")}
    named = {name: environ[name] for name in access.env if name in environ}
    return {"PATH": ":".join(tools.path), **passed, **dict(tools.variables), **named}
