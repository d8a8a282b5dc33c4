"""Describe what commands in a folder can see and change, for `hone doctor`."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from hone.core.clock import Clock
from hone.sandbox.caches import cache_of, cache_variables, measure
from hone.sandbox.choice import Sandbox, SandboxChoice
from hone.sandbox.host_view import HostView
from hone.sandbox.protection import QUARANTINE, Protection
from hone.sandbox.spec import SYSTEM

_SHOWN = 6
_MEBI = 2**20


def describe_view(folder: Path, sandbox: Sandbox, choice: SandboxChoice, clock: Clock) -> Iterator[str]:
    """Yield one line for each kind of thing. Nothing is created or changed."""
    around = sandbox.survey(folder)
    yield from _tools(around)
    yield from _environment(around)
    if sandbox.home:
        cache = cache_of(sandbox.home, folder)
        used = f"{measure(cache) / _MEBI:,.1f} MiB" if cache.exists() else "empty"
        yield f"caches of commands in this folder: {_short(cache)} ({used})"
        kept = [path for path in (sandbox.home / QUARANTINE).rglob("*") if not path.is_dir()]
        if kept:
            place = _short(sandbox.home / QUARANTINE)
            yield f"quarantine: {len(kept):,} files of commands, in {place}; delete what you do not need"
    yield from _limits(folder, sandbox, around, choice, clock)
    access = around.access
    given = (("read", _some(access.read)), ("write", _some(access.write)), ("env", ", ".join(access.env)))
    settings = "; ".join(f"{key}: {value}" for key, value in given if value)
    if settings:
        yield f"allowed by [sandbox] in hone.toml: {settings}"


def _tools(around: HostView) -> Iterator[str]:
    own = [Path(path) for path in around.tools.path if not path.startswith(SYSTEM)]
    yield f"commands find programs in: {_some(own) + ' and ' if own else ''}the system's folders"
    names = ", ".join(around.tools.names)
    active = dict(around.env).get("VIRTUAL_ENV")
    if names:
        yield f"commands can use: {names}"
    if active:
        yield f"commands run in the virtual environment: {_short(active)}"
    shown = _some(around.readable)
    if shown:
        yield f"commands can read: {shown}"


def _environment(around: HostView) -> Iterator[str]:
    made = [name for name, _ in cache_variables("")]
    names = dict.fromkeys(
        (*(name for name, _ in around.env), "HOME", "TMPDIR", "LANG", "TERM", "PAGER", "USER")
    )
    yield f"commands get the variables: {', '.join(sorted(names))}, and {len(made)} for caches"
    if around.identity.name and around.identity.email:
        yield f"git in commands commits as: {around.identity}"
    else:
        yield "git in commands has no name to commit with; see git config --global user.name, and user.email"


def _limits(
    folder: Path, sandbox: Sandbox, around: HostView, choice: SandboxChoice, clock: Clock
) -> Iterator[str]:
    spec = sandbox.spec(folder, around=around)
    protection = Protection((folder, *around.access.write), spec.hidden, sandbox.home, clock)
    places = [path.relative_to(folder) for path in _all(protection) if path.is_relative_to(folder)]
    if places and choice.mode.seals:
        yield f"commands can only read: {_some(places)}"
    elif places:
        yield f"put back after a command that changes them: {_some(places)}; user namespaces would seal them"
    hidden = [path for path in around.hidden if os.path.exists(path)]
    if hidden:
        yield f"hidden from commands: {_some(hidden)}"


def _all(protection: Protection) -> tuple[Path, ...]:
    seals = protection.begin(seals=True, settled=True)
    return (*seals.loose, *seals.firm)


def _some(paths: Iterable[Path]) -> str:
    names = [_short(path) for path in paths]
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _short(path: Path | str) -> str:
    home = os.path.realpath(os.path.expanduser("~"))
    text = str(path)
    return f"~{text[len(home) :]}" if home != "/" and text.startswith(f"{home}/") else text
