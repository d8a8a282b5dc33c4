"""Leave the storing of conversations to a worker: they are read here, and queued as read.

Files of another agent are on one machine, so other machines cannot read them. Whose words they hold is
decided when they are read. A worker then compares each conversation with what is stored and adds what is new,
in batches; repeating it adds nothing.
"""

import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec
from msgspec import Raw, Struct

from hone.app import Hone
from hone.cli.output import number_of
from hone.core.clock import Clock
from hone.core.documents import QUEUED, Documents
from hone.core.errors import Corrupt
from hone.core.ids import SessionId
from hone.core.messages import decode
from hone.core.ports import Header, StoredSession
from hone.core.queued import Argument, CommandStep, QueuedCommand
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.imports.part import KIND
from hone.features.imports.plan import ImportPlan, ImportState, carry_over, find_due, prefix
from hone.runtime.queued import CommandQueue

BATCH = 4 * 1024 * 1024
"""How many bytes of conversations to upload and store together; a longer one is alone."""
ABANDONED = timedelta(days=2)
"""The time after which an upload without a command counts as abandoned."""


class QueuedSession(Struct, frozen=True):
    """A conversation as read. Its messages are canonical texts, each with its trust and its time."""

    id: SessionId
    created: datetime
    title: str
    folder: str
    messages: tuple[tuple[Raw, Trust, datetime], ...]

    @classmethod
    def of(cls, found: StoredSession) -> "QueuedSession":
        header, nodes = found.header, found.transcript.nodes
        messages = tuple((Raw(node.encoded), node.trust, node.at) for node in nodes)
        return cls(header.id, header.created, header.title, header.folder, messages)

    def restore(self, source: str) -> StoredSession:
        base = prefix(source)
        said = Transcript(base.digest)
        for encoded, trust, at in self.messages:
            said = said.then(decode(bytes(encoded)), trust, at)
        return StoredSession(Header(self.id, self.created, self.title, folder=self.folder), base, said)


def queue(hone: Hone, source: str, found: ImportPlan, *, foreign: bool) -> QueuedCommand:
    """Upload what an import would store, and queue the command. Nothing is stored before a worker does it."""
    documents, clock = hone.documents, hone.clock
    _tidy(documents, clock)
    folder = f"{clock.now():%Y%m%d}-{os.urandom(6).hex()}"
    count = 0
    for number, batch in enumerate(_batches(find_due(source, found, foreign=foreign)), 1):
        documents.write(QUEUED, f"{folder}/{number:06}.jsonl", b"".join(batch))
        count += len(batch)
    title = f"import of {number_of(count, 'conversation')} from {source}"
    arguments: dict[str, Argument] = {"source": source, "folder": folder, "count": count}
    return CommandQueue(documents, clock).add(KIND, title, arguments)


def _batches(found: Iterable[StoredSession]) -> Iterator[list[bytes]]:
    batch, size = list[bytes](), 0
    for each in found:
        line = msgspec.json.encode(QueuedSession.of(each)) + b"\n"
        if batch and size + len(line) > BATCH:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch


async def do_step(hone: Hone, command: QueuedCommand) -> CommandStep:
    """Store one batch. Raises HoneError."""
    source, folder = str(command.arguments["source"]), str(command.arguments["folder"])
    total, documents = int(command.arguments["count"]), hone.documents
    for name in _names(documents, folder)[:1]:
        for line in (documents.read(QUEUED, name) or b"").splitlines():
            await _store(hone, source, line)
        documents.delete(QUEUED, name)
    left = len(_names(documents, folder))
    if left:
        return CommandStep(f"{number_of(left, 'batch is', 'batches are')} left to store.", hone.clock.now())
    here = "it is" if total == 1 else "all are"
    return CommandStep(f"{here} stored. To see: hone sessions list")


async def _store(hone: Hone, source: str, line: bytes) -> ImportState:
    try:
        found = msgspec.json.decode(line, type=QueuedSession).restore(source)
    except (msgspec.DecodeError, KeyError, ValueError) as error:
        raise Corrupt(f"A queued conversation cannot be read: {error}.") from error
    return await carry_over(hone.sessions, found)


def _names(documents: Documents, folder: str) -> list[str]:
    return [name for name in documents.names(QUEUED) if name.startswith(f"{folder}/")]


def _tidy(documents: Documents, clock: Clock) -> None:
    """Delete uploads of cancelled and failed commands, and abandoned ones."""
    known = CommandQueue(documents, clock)
    waiting = {each.arguments.get("folder") for each in known.waiting()}
    ended = {each.arguments.get("folder") for each in known.all()} - waiting
    for name in documents.names(QUEUED):
        folder, slash, _ = name.partition("/")
        is_old = folder[:8] < f"{clock.now() - ABANDONED:%Y%m%d}"
        if slash and folder not in waiting and (folder in ended or is_old):
            documents.delete(QUEUED, name)
