"""Restrict a process and its descendants to certain files with Landlock. Part of the supervisor.

Rights that the running kernel does not know are left out of the rules. A trial shows whether the rest
suffices.
"""

import ctypes
import os
import struct

from hone.sandbox import kernel

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE, _READ, _LIST = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REMOVE_FOLDER, _REMOVE_FILE = 1 << 4, 1 << 5
_MAKE_CHARACTER, _MAKE_FOLDER, _MAKE_FILE, _MAKE_SOCKET, _MAKE_PIPE = 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 10
_MAKE_BLOCK, _MAKE_LINK = 1 << 11, 1 << 12
_REFER, _TRUNCATE, _IOCTL = 1 << 13, 1 << 14, 1 << 15

_FIRST = (1 << 13) - 1
_SINCE = {2: _REFER, 3: _TRUNCATE, 5: _IOCTL}
_TCP_SINCE, _BIND_AND_CONNECT = 4, 3
_SCOPES_SINCE, _SOCKETS, _SOCKETS_AND_SIGNALS = 6, 1, 3

_OF_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _IOCTL
READING = _EXECUTE | _READ | _LIST
WRITING = (
    READING
    | _WRITE
    | _REMOVE_FOLDER
    | _REMOVE_FILE
    | _TRUNCATE
    | _REFER
    | (_MAKE_FOLDER | _MAKE_FILE | _MAKE_SOCKET | _MAKE_PIPE | _MAKE_LINK)
)
DEVICE = _READ | _WRITE | _TRUNCATE


def version() -> int:
    """Return the kernel's version. Raises OSError where Landlock is missing or switched off."""
    return kernel.system_call("landlock", _CREATE_RULESET, None, 0, _VERSION)


def restrict(rules: list[tuple[str, int]], *, network: bool) -> None:
    """Restrict this process from now on. A missing path needs no rule."""
    known = version()
    handled = _FIRST | sum(right for since, right in _SINCE.items() if known >= since)
    tcp = 0 if network or known < _TCP_SINCE else _BIND_AND_CONNECT
    scopes = _SOCKETS_AND_SIGNALS if known >= _SCOPES_SINCE else 0
    ruleset = _ruleset(handled, tcp, scopes)
    for path, rights in rules:
        _permit(ruleset, path, rights & handled)
    _enter(ruleset)


def shut_sockets() -> None:
    """Close abstract sockets of others, where the kernel can do that. They belong to a network and not to a
    folder: anything in the same network could reach them, and with them the screen and its keyboard."""
    try:
        if version() >= _SCOPES_SINCE:
            _enter(_ruleset(0, 0, _SOCKETS))
    except OSError:
        return


def _ruleset(files: int, tcp: int, scopes: int) -> int:
    # An older kernel accepts the longer structure as long as the unknown part is zero.
    attributes = struct.pack("=QQQ", files, tcp, scopes)
    return kernel.system_call("landlock", _CREATE_RULESET, attributes, len(attributes), 0)


def _enter(ruleset: int) -> None:
    kernel.system_call("landlock", _RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def _permit(ruleset: int, path: str, rights: int) -> None:
    try:
        file = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return
    if not os.path.isdir(file):
        rights &= _OF_FILES
    rule = ctypes.create_string_buffer(struct.pack("=Qi", rights, file))
    kernel.system_call(f"landlock {path}", _ADD_RULE, ruleset, _PATH_BENEATH, rule, 0)
    os.close(file)
