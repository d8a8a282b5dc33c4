"""The process between Hone and a command. It sandboxes the command and outlives all the processes it starts.

It waits for the command and for the lifeline, a pipe that closes when Hone stops the command or dies. Orphans
of the command become its children, however often they fork, and it ends when none is left. It starts with
every command, so this module and its imports must load fast.
"""

import os
import resource
import select
import signal
import sys
import time
from _socket import socket, socketpair

from hone.sandbox import carving, descent, kernel, landlock, seccomp
from hone.sandbox.attributes import AttributeHelper, find_areas, hand_over, take_over

REPORT = 3
"""Where a command finds the pipe on which it may say where it ended."""
CANNOT = 125
"""The exit code when the command could not be started."""
_MOMENT = 5
"""Milliseconds between two looks at what is left to kill."""

_LINUX = sys.platform == "linux"
"""Elsewhere there are no cells, and only what stays in the command's process group is found again."""

Settings = dict[str, list[str]]


def main(arguments: list[str]) -> None:
    """lifeline, report, kind, then pairs of setting and value, --, and the command."""
    lifeline, report, kind, *rest = arguments
    end = rest.index("--")
    settings: Settings = {}
    for name, value in zip(rest[:end:2], rest[1:end:2], strict=True):
        settings.setdefault(name, []).append(value)
    os.set_inheritable(int(lifeline), False)
    if _LINUX:
        kernel.control(kernel.PR_SET_CHILD_SUBREAPER, 1)
    wake = _wake_on_child()
    ours, theirs = socketpair()
    child = os.fork()
    if child == 0:
        _start(kind, settings, rest[end + 1 :], int(report), theirs)
    os.close(int(report))
    theirs.close()
    watch = Watch(child, int(lifeline), wake, bubble=kind == "bubble")
    if kind == "landlock":
        watch.employ(ours, settings)
    os._exit(watch.until_all_is_gone(float(settings["grace"][0])))


def _wake_on_child() -> int:
    """Return a descriptor that becomes readable when a child has ended."""
    reader, writer = os.pipe()
    for each in (reader, writer):
        os.set_blocking(each, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


class Watch:
    def __init__(self, child: int, lifeline: int, wake: int, *, bubble: bool) -> None:
        self.child = child
        self.lifeline = lifeline
        self.wake = wake
        self.bubble = bubble
        self.code: int | None = None
        self.poll = select.poll()
        self.poll.register(wake, select.POLLIN)
        self.poll.register(lifeline, select.POLLIN)
        self.helper: AttributeHelper | None = None

    def employ(self, channel: socket, settings: Settings) -> None:
        """Wait until the command has its filter, or has failed to get one."""
        listener = take_over(channel)
        if listener is not None:
            dropped = int(settings["drop"][0]) if "drop" in settings else None
            areas = find_areas(settings.get("write", []), settings.get("mount", []))
            self.helper = AttributeHelper(listener, areas, os.uname().machine, dropped)
            self.poll.register(listener, select.POLLIN)

    def until_all_is_gone(self, grace: float) -> int:
        deadline: float | None = None
        while self._reap() and self.code is None:
            left = None if deadline is None else 1000 * (deadline - time.monotonic())
            if left is not None and left <= 0:
                break
            if self._waited(left) and deadline is None:
                self.poll.unregister(self.lifeline)
                self._signal(signal.SIGTERM)
                deadline = time.monotonic() + grace
        while self._reap():
            self._signal(signal.SIGKILL)
            self._waited(_MOMENT)
        return 128 + signal.SIGKILL if self.code is None else self.code

    def _reap(self) -> bool:
        """Reap ended processes. Return False when nothing is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self.child:
                    code = os.waitstatus_to_exitcode(status)
                    self.code = code if code >= 0 else 128 - code
        except ChildProcessError:
            return False

    def _waited(self, milliseconds: float | None) -> bool:
        """Wait for an end or for the time to pass. Return True if the lifeline was cut."""
        ready = dict(self.poll.poll(milliseconds))
        if self.wake in ready:
            os.read(self.wake, 4096)
        if self.helper and self.helper.listener in ready:
            if ready[self.helper.listener] & select.POLLIN:
                self.helper.serve()
            else:  # nobody is left who could ask
                self.poll.unregister(self.helper.listener)
                self.helper = None
        return self.lifeline in ready

    def _signal(self, number: signal.Signals) -> None:
        # bubblewrap itself must outlive a polite request: when it ends, its cell ends at once.
        polite = self.bubble and number == signal.SIGTERM
        for pid in descendants(os.getpid()) if _LINUX else [-self.child]:
            if not (polite and pid == self.child):
                _kill(pid, number)


def descendants(ancestor: int) -> list[int]:
    names = [name for name in os.listdir("/proc") if name.isdigit()]
    parents = {int(name): int((_facts(name) or (b"", b"-1"))[1]) for name in names}
    found = [ancestor]
    for each in found:
        found += [pid for pid, parent in parents.items() if parent == each]
    return found[1:]


def _facts(pid: str) -> list[bytes]:
    """Return the fields of a process after its name; none if it is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def _kill(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):  # gone, or started with another user's rights
        return


def _start(kind: str, settings: Settings, command: list[str], report: int, channel: socket) -> None:
    """Become the command, or end."""
    try:
        os.setsid()
        # Python ignores these, and a command would inherit that.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(report, REPORT)
        os.set_inheritable(report, report == REPORT)
        _limit(settings.get("limit", []), int(settings.get("drop", [str(os.getuid())])[0]))
        match kind:
            case "bubble":
                command = _bubbled(settings, command)
            case "landlock":
                _fence(settings, channel)
            case _:
                os.chdir(settings["folder"][0])
        if _LINUX:
            kernel.control(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        os.execv(command[0], command)
    except (OSError, KeyError, ValueError) as error:
        os.write(2, f"the command could not be started: {error}\n".encode(errors="replace"))
    finally:
        os._exit(CANNOT)


def _limit(limits: list[str], uid: int) -> None:
    for each in limits:
        name, _, value = each.partition("=")
        kind = getattr(resource, name)
        _, hardest = resource.getrlimit(kind)
        limit = int(value) + (_threads_of(uid) if name == "RLIMIT_NPROC" else 0)
        limit = limit if hardest == resource.RLIM_INFINITY else min(limit, hardest)
        resource.setrlimit(kind, (limit, limit))


def _threads_of(uid: int) -> int:
    """Return what the kernel counts for a user; one limit on processes covers all of them."""
    count = 0
    for pid in os.listdir("/proc"):
        facts = _facts(pid) if pid.isdigit() and _owner(pid) == uid else []
        count += int(facts[17]) if facts else 0
    return count


def _owner(pid: str) -> int:
    try:
        return os.stat(f"/proc/{pid}").st_uid
    except OSError:
        return -1


def _bubbled(settings: Settings, command: list[str]) -> list[str]:
    if "drop" in settings:
        uid = int(settings["drop"][0])
        kernel.leave_mounts()
        descent.stage(settings.get("stage", []), uid)
        descent.drop(uid)
    kernel.control(kernel.PR_SET_NO_NEW_PRIVS, 1)
    landlock.shut_sockets()
    file = os.memfd_create("filter", 0)
    os.write(file, seccomp.program(os.uname().machine, fenced=False, network=False))
    os.lseek(file, 0, os.SEEK_SET)
    return [command[0], "--seccomp", str(file), *command[1:]]


def _fence(settings: Settings, channel: socket) -> None:
    network, alone = "network" in settings, settings.get("network") == ["own"]
    if "drop" in settings:
        uid = int(settings["drop"][0])
        kernel.leave_mounts()
        if alone:
            kernel.leave_network()
        descent.overlay(settings.get("own", []), uid)
        carving.carve(settings.get("mount", []))
        descent.drop(uid)
    elif "namespace" in settings:
        kernel.become_mounter()
        if alone:
            kernel.leave_network()
        carving.carve(settings.get("mount", []))
    os.chdir(settings["folder"][0])
    kernel.control(kernel.PR_SET_NO_NEW_PRIVS, 1)
    rights = {"read": landlock.READING, "write": landlock.WRITING, "device": landlock.DEVICE}
    rules = [(path, right) for name, right in rights.items() for path in settings.get(name, [])]
    landlock.restrict(rules, network=network)
    machine = os.uname().machine
    listener = seccomp.install(seccomp.program(machine, fenced=True, network=network), machine)
    hand_over(channel, listener)
    os.close(listener)


if __name__ == "__main__":
    main(sys.argv[1:])
