"""How an owner talks with Hone: in the chat, with `hone run`, through a program, and over HTTP."""

import json
import os
import pty
import re
import select
import signal
import tempfile
import time
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Protocol

from benchmarks.week import program
from benchmarks.week.nursery import Child, Nursery, Order
from benchmarks.week.provider import Provider
from benchmarks.week.stories import SurfaceName, Talk
from benchmarks.week.world import SILENCE, TURN, WorldClock

PATIENCE = 30.0
SETTLING, POLL = 10.0, 0.1
"""Seconds that an owner gives a review, and between two checks."""
ENDING = 0.5
"""Seconds for a process to note that a turn has ended, before the world's clock advances."""
LIFETIME, ROUNDS = 900.0, 4
"""Seconds that a background process lives, and how often it finds something to do, at most."""
PROMPT = re.compile(rb"(?:^|\n)> $")
QUESTION = re.compile(rb"\[n\] [^\n]*\(default\)\r?\n(?:[^\n]*\[r\][^\n]*\r?\n)?$")
TRUST = b"Do you trust this folder?"
ENDS = {"kill": signal.SIGKILL, "hangup": signal.SIGHUP}


class Desk:
    """One owner's home and folder, and the commands used there."""

    def __init__(self, nursery: Nursery, provider: Provider, clock: WorldClock, root: Path) -> None:
        self.nursery = nursery
        self.provider = provider
        self.clock = clock
        self.home, self.folder = root / "home", root / "work"
        self.questions = 0
        self._leaves = True
        self._outputs = root / "out"
        for place in (self.home, self.folder, self._outputs):
            place.mkdir(mode=0o700)

    @property
    def environ(self) -> Mapping[str, str]:
        """Return the environment. Reviews for a background process are queued: `look_back` does them instead,
        by the world's clock."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "HONE_HOME": str(self.home),
            "HONE_MODEL": "anthropic/scripted",
            "HONE_LEARNING": "queue",
            "HONE_LOCAL": "false",
            "ANTHROPIC_BASE_URL": self.provider.url,
            "ANTHROPIC_API_KEY": "sk-ant-test",
            "TERM": "dumb",
            "LANG": "C.UTF-8",
        }

    def start(self, *arguments: str, handles: tuple[int, int, int], terminal: bool = False) -> Child:
        return self.nursery.start(Order(arguments, self.environ, str(self.folder), terminal), *handles)

    def hone(self, *arguments: str) -> tuple[int, str]:
        """Run a command to its end; return its exit code and output."""
        with tempfile.TemporaryFile(dir=self._outputs) as out, open(os.devnull, "r+b") as nothing:
            handles = nothing.fileno(), out.fileno(), nothing.fileno()
            code = self.start(*arguments, handles=handles).wait()
            out.seek(0)
            return code, out.read().decode()

    def find_due(self) -> datetime | None:
        """Return when the next review is due; now if one is queued. If Hone cannot say so, it leaves no
        background process that would do it."""
        code, out = self.hone("worker", "status", "--json") if self._leaves else (1, "")
        if code:
            self._leaves = False
            return None
        found = json.loads(out)
        return datetime.fromisoformat(found["next"]) if found["next"] else None

    def look_back(self) -> None:
        """Do what the background process of a normal end does."""
        due = self.find_due()
        if due and due <= self.clock.now():
            self.hone("worker", "--once")

    def stay_behind(self) -> None:
        """Do the same, and wait for what becomes due while that process lives."""
        until = self.clock.now() + timedelta(seconds=LIFETIME)
        for _ in range(ROUNDS):
            due = self.find_due()
            if due is None or due > until:
                return
            self.clock.advance(max(0.0, (due - self.clock.now()).total_seconds()))
            self.hone("worker", "--once")

    def fall_silent(self, poke: Callable[[], object]) -> None:
        """Say nothing for some minutes, and wait for the review that a running process does then. The clock
        jumps to shortly before it is due, and `poke` wakes the process, so that it notices."""
        due = self.find_due()
        left = (due - self.clock.now()).total_seconds() if due else SILENCE
        self.clock.advance(max(0.0, left - ENDING))
        poke()
        if self._leaves and due:
            time.sleep(2 * ENDING)
        self.settle()

    def settle(self, times: int = 2) -> None:
        """Wait while a running process does what is left for it. It must be seen idle several times in a row:
        what is due and what is queued cannot be observed at once."""
        begun, idle = time.monotonic(), 0
        while idle < times and time.monotonic() - begun < SETTLING:
            idle = 0 if self._is_busy() else idle + 1
            if idle < times:
                time.sleep(POLL)

    def _is_busy(self) -> bool:
        due = self.find_due()
        if self._leaves:
            return due is not None and due <= self.clock.now()
        _, out = self.hone("reviews", "--json")
        return any(each["state"] not in ("done", "failed", "cancelled") for each in json.loads(out))


class Surface(Protocol):
    def converse(self, talk: Talk, name: str) -> None:
        """Hold a conversation, including its end and what that triggers."""
        ...

    def close(self) -> None: ...


class ChatSurface:
    """A terminal that the owner types at."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._broken_off = False

    def converse(self, talk: Talk, name: str) -> None:
        desk = self._desk
        master, slave = pty.openpty()
        child = desk.start(handles=(slave, slave, slave), terminal=True)
        os.close(slave)
        typist = Typist(master, desk)
        try:
            typist.prompt()
            desk.settle(2 if self._broken_off else 1)  # typing takes longer than a review
            self._say(typist, talk)
            self._leave(typist, talk, child)
        finally:
            typist.close()
        self._broken_off = talk.end in ENDS
        if talk.end in ("exit", "interrupted"):
            child.wait()
            desk.look_back()
        elif talk.end != "kill":
            child.wait()

    def _say(self, typist: "Typist", talk: Talk) -> None:
        desk = self._desk
        cut = talk.turns[-1] if talk.end == "interrupted" else ""
        for at, turn in enumerate(talk.turns):
            desk.clock.advance(TURN)
            if cut and at == len(talk.turns) - 1:
                desk.provider.stall(turn)
                typist.type(f"{turn}\n")
                desk.provider.wait_stalled()
                typist.type("\x03")
            else:
                typist.type(f"{turn}\n")
            typist.prompt()

    def _leave(self, typist: "Typist", talk: Talk, child: Child) -> None:
        match talk.end:
            case "exit" | "interrupted":
                typist.type("\x04")
                typist.end()
            case "kill":
                child.signal(signal.SIGKILL)
                child.wait()
            case "idle":
                time.sleep(ENDING)
                self._desk.fall_silent(typist.press_enter)

    def close(self) -> None:
        """Do nothing: nothing stays open."""


class Typist:
    """Reads what a terminal shows and presses keys; says no to trust, yes to everything else."""

    def __init__(self, master: int, desk: Desk) -> None:
        self._master = master
        self._desk = desk
        self._shown = b""

    def type(self, keys: str) -> None:
        self._shown = b""
        os.write(self._master, keys.encode())

    def press_enter(self) -> None:
        self.type("\n")
        self.prompt()

    def prompt(self) -> None:
        """Wait for the next prompt; answer questions before it."""
        while True:
            if PROMPT.search(self._shown):
                return
            if QUESTION.search(self._shown):
                self._desk.questions += 1
                self.type("n" if TRUST in self._shown else "y\r")
            if not self._read():
                raise EOFError(f"the chat ended: {self._shown.decode(errors='replace')}")

    def end(self) -> None:
        """Read until the chat has closed the terminal."""
        while self._read():
            continue

    def close(self) -> None:
        os.close(self._master)

    def _read(self) -> bool:
        if not select.select([self._master], [], [], PATIENCE)[0]:
            raise TimeoutError(f"no prompt came: {self._shown.decode(errors='replace')}")
        try:
            data = os.read(self._master, 65536)
        except OSError:  # how a terminal reports that its other side is closed
            data = b""
        self._shown += data
        return bool(data)


class RunSurface:
    """One command for each turn; a longer conversation is resumed."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def converse(self, talk: Talk, name: str) -> None:
        desk, session, left = self._desk, "", False
        for at, turn in enumerate(talk.turns):
            last = at == len(talk.turns) - 1
            cut = signal.SIGINT if last and talk.end == "interrupted" else 0
            resumed = ("--resume", session) if session else ()
            out = self._once(turn, cut, "run", "--json", *resumed, turn)
            said = json.loads(out) if out.strip() else {}
            session, left = said.get("session", session), said.get("learning") != "none"
            desk.look_back()
            desk.clock.advance(TURN)
        if left:
            desk.stay_behind()

    def _once(self, turn: str, cut: int, *arguments: str) -> str:
        desk = self._desk
        if not cut:
            return desk.hone(*arguments)[1]
        desk.provider.stall(turn)
        with open(os.devnull, "r+b") as nothing:
            child = desk.start(*arguments, handles=(nothing.fileno(),) * 3)
            desk.provider.wait_stalled()
            child.signal(cut)
            child.wait()
        return ""

    def close(self) -> None:
        """Do nothing: nothing stays open."""


class LibrarySurface:
    """A program in which a conversation is one run."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def converse(self, talk: Talk, name: str) -> None:
        desk = self._desk
        task = program.Task(talk.turns, ENDS.get(talk.end, 0), talk.end == "idle")
        environ = {name: value for name, value in desk.environ.items() if name != "HONE_LEARNING"}
        order = Order((), environ, str(desk.folder), talk=task)
        if talk.end == "interrupted":
            desk.provider.stall(talk.turns[-1])
        with tempfile.TemporaryFile() as out:
            child = desk.nursery.start(order, out.fileno(), out.fileno(), out.fileno())
            if talk.end == "interrupted":
                desk.provider.wait_stalled()
                child.signal(signal.SIGINT)
            child.wait()
            out.seek(0)
            desk.questions += _count_asked(out.read().decode())

    def close(self) -> None:
        """Do nothing: nothing stays open."""


def _count_asked(out: str) -> int:
    found = [line for line in out.splitlines() if line.startswith(program.ASKED)]
    return int(found[-1].removeprefix(program.ASKED)) if found else 0


class ServeSurface:
    """A running server, and a client with the owner's own key."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._child: Child | None = None
        self._port = 0

    def converse(self, talk: Talk, name: str) -> None:
        desk = self._desk
        if self._child is None:
            self._start()
            desk.settle()
        for at, turn in enumerate(talk.turns):
            desk.clock.advance(TURN)
            cut = at == len(talk.turns) - 1 and talk.end == "interrupted"
            self._send(turn, f"talk-{name}", cut=cut)
        if talk.end == "kill" and self._child:
            self._child.signal(signal.SIGKILL)
            self._child.wait()
            self._child = None
            return
        time.sleep(ENDING)
        desk.fall_silent(lambda: self._call("GET", "/health"))

    def _start(self) -> None:
        """Wait for the line that says where it is."""
        until = time.monotonic() + PATIENCE
        with tempfile.TemporaryFile() as out, open(os.devnull, "r+b") as nothing:
            handles = nothing.fileno(), out.fileno(), nothing.fileno()
            self._child = self._desk.start("serve", "--port", "0", "--no-open", handles=handles)
            while not (found := re.findall(rb":(\d+)/v1", os.pread(out.fileno(), 10_000, 0))):
                if time.monotonic() > until:
                    raise TimeoutError("the server did not start")
                time.sleep(0.02)
        self._port = int(found[0])
        time.sleep(ENDING)  # its startup work is done

    def _send(self, turn: str, name: str, *, cut: bool) -> None:
        body = json.dumps({"model": "hone", "messages": [{"role": "user", "content": turn}]})
        if not cut:
            self._call("POST", "/v1/chat/completions", body, name)
            return
        self._desk.provider.stall(turn)
        connection = self._request("POST", "/v1/chat/completions", body, name)
        self._desk.provider.wait_stalled()
        newest = json.loads(self._call("GET", "/api/sessions"))["sessions"][0]["session"]
        self._call("POST", f"/api/sessions/{newest}/interrupt")
        connection.getresponse().read()
        connection.close()

    def _call(self, method: str, path: str, body: str = "", name: str = "") -> str:
        connection = self._request(method, path, body, name)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        if answer.status >= 300:
            raise RuntimeError(f"the server answered {answer.status}: {text}")
        return text

    def _request(self, method: str, path: str, body: str, name: str) -> HTTPConnection:
        key = (self._desk.home / "serve.key").read_text().strip()
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
        connection = HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        connection.request(method, path, body or None, headers | ({"X-Hone-Session": name} if name else {}))
        return connection

    def close(self) -> None:
        if self._child:
            self._child.signal(signal.SIGTERM)
            self._child.wait()


def open_surface(name: SurfaceName, desk: Desk) -> Surface:
    match name:
        case "chat":
            return ChatSurface(desk)
        case "run":
            return RunSurface(desk)
        case "library":
            return LibrarySurface(desk)
        case "serve":
            return ServeSurface(desk)
