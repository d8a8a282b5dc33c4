"""The switchboard of servers in one process. A home with its data in a file has one server, so this is
enough."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from hone.core.permissions import Answer
from hone.core.switchboard import Inbox, Post, TurnStart, name_end

Asked = tuple[str, str]
"""A session and one of its questions."""


@dataclass(slots=True)
class Board:
    """State that the servers of one process share."""

    servers: dict[str, "LocalSwitchboard"] = field(default_factory=dict)
    turns: dict[str, str] = field(default_factory=dict)
    interrupted: set[str] = field(default_factory=set)
    modes: dict[str, str] = field(default_factory=dict)
    questions: dict[Asked, str] = field(default_factory=dict)
    answers: dict[Asked, Answer] = field(default_factory=dict)
    channels: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def wake(self, server: str) -> None:
        if found := self.servers.get(server):
            found.wake()


class LocalSwitchboard:
    def __init__(self, server: str = "", board: Board | None = None) -> None:
        self.server = server
        self._board = board or Board()
        self._board.servers[server] = self
        self._posts: list[Post] = []
        self._stirred = asyncio.Event()

    async def begin(self, session: str) -> TurnStart:
        board = self._board
        board.turns[session] = self.server
        return TurnStart(board.modes.get(session, ""), self._listeners(session))

    async def end(self, session: str) -> None:
        board = self._board
        if board.turns.get(session) == self.server:
            del board.turns[session]
            board.interrupted.discard(session)
        for server in self._listeners(name_end(session)):
            board.wake(server)

    async def busy(self) -> Sequence[str]:
        return sorted(self._board.turns)

    async def interrupt(self, session: str) -> bool:
        server = self._board.turns.get(session)
        if server is None:
            return False
        self._board.interrupted.add(session)
        self._board.wake(server)
        return True

    async def choose_mode(self, session: str, mode: str) -> None:
        self._board.modes[session] = mode
        self._board.wake(self._board.turns.get(session, ""))

    async def note_told(self, session: str, mode: str) -> None:
        if self._board.modes.get(session) == mode:
            del self._board.modes[session]

    async def chosen_mode(self, session: str) -> str:
        return self._board.modes.get(session, "")

    async def ask(self, session: str, question: str) -> None:
        self._board.questions[session, question] = self.server

    async def answer(self, session: str, question: str, answer: Answer) -> bool:
        board, asked = self._board, (session, question)
        if asked not in board.questions or asked in board.answers:
            return False
        board.answers[asked] = answer
        board.wake(board.questions[asked])
        return True

    async def withdraw(self, session: str, question: str) -> None:
        self._board.questions.pop((session, question), None)
        self._board.answers.pop((session, question), None)

    async def listen(self, channels: Collection[str]) -> None:
        board = self._board
        for channel in [each for each, servers in board.channels.items() if self.server in servers]:
            board.channels[channel].discard(self.server)
        for channel in channels:
            board.channels[channel].add(self.server)
        for channel in [each for each, servers in board.channels.items() if not servers]:
            del board.channels[channel]
        for server in board.servers.keys() - {self.server}:
            board.wake(server)

    async def send(self, posts: Sequence[Post]) -> None:
        for each in posts:
            if found := self._board.servers.get(each.server):
                found._posts.append(each)
                found.wake()

    async def receive(self, turns: Collection[str], channels: Collection[str]) -> Inbox:
        board = self._board
        for session in turns:
            board.turns.setdefault(session, self.server)
        own = {session for session, server in board.turns.items() if server == self.server}
        interrupted, posts = sorted(own & board.interrupted), self._posts
        board.interrupted -= own
        self._posts = []
        answers = [
            (*asked, answer)
            for asked, answer in board.answers.items()
            if board.questions[asked] == self.server
        ]
        modes = {session: mode for session, mode in board.modes.items() if session in own}
        mine = [channel for channel in channels if board.turns.get(channel, self.server) == self.server]
        listeners = {channel: self._listeners(channel) for channel in mine}
        return Inbox(
            interrupted, modes, answers, posts, {name: found for name, found in listeners.items() if found}
        )

    def _listeners(self, channel: str) -> frozenset[str]:
        found = self._board.channels.get(channel, set())
        return frozenset(found - {self.server})

    async def tidy(self) -> None:
        board, lost = self._board, self._board.turns.values() - self._board.servers.keys()
        board.turns = {session: server for session, server in board.turns.items() if server not in lost}

    def wake(self) -> None:
        self._stirred.set()

    async def stir(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stirred.wait()
        self._stirred.clear()

    async def close(self) -> None:
        """Close. What the server left is forgotten at once, so that nothing in this process takes it for
        alive."""
        board = self._board
        board.servers.pop(self.server, None)
        board.turns = {session: server for session, server in board.turns.items() if server != self.server}
        board.questions = {
            asked: server for asked, server in board.questions.items() if server != self.server
        }
        board.answers = {asked: answer for asked, answer in board.answers.items() if asked in board.questions}
        for servers in board.channels.values():
            servers.discard(self.server)
