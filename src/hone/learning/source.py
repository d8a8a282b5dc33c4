"""Read the subject of a review: one conversation, or several short ones in a row."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime

from hone.core.errors import Missing
from hone.core.ids import SessionId
from hone.core.jobs import BY_HAND, Job, Topics
from hone.core.messages import Message
from hone.core.ports import Sessions, StoredSession
from hone.core.transcript import Node, Source, Transcript
from hone.knowledge.reasons import LABELS, find_cue

TAUGHT = {LABELS[kind] for kind in ("remember", "correction", "complaint")}
"""The fewest of the owner's words that may be about how to do a task."""
EXPLAINED = 200
"""The fewest characters of a message that may explain a procedure."""


async def read_source(sessions: Sessions, job: Job, stored: StoredSession) -> Source:
    """Return the conversations as they were when the review was due. `stored` is the first one."""
    sources = [await _read(sessions, stored, job.messages, job.created)]
    for session, messages in job.others:
        with suppress(Missing):  # it was deleted in the meantime
            other = await sessions.load(session)
            sources.append(await _read(sessions, other, messages, job.created))
    return sources[0] if len(sources) == 1 else join(sources)


async def read_widest(
    sessions: Sessions, job: Job, stored: StoredSession, queued: Sequence[Job]
) -> tuple[Source, Sequence[Job]]:
    """Return the subject of a review together with what later reviews of the conversation add, and the jobs
    of `queued` that it covers completely. The hash chain tells what contains what. A review asked for by hand
    is always done."""
    own = await read_source(sessions, job, stored)
    alone = [each for each in queued if each.id != job.id and not (each.others or job.others)]
    alone = [each for each in alone if each.why != BY_HAND]
    sources = [(each, await read_source(sessions, each, stored)) for each in alone]
    wider = (source for _, source in sources if _covers(source, own))
    widest = max((own, *wider), key=lambda source: len(source.transcript))
    return widest, [each for each, source in sources if _covers(widest, source)]


def _covers(wide: Source, narrow: Source) -> bool:
    """Tell whether one begins with the other, word for word."""
    return wide.transcript.upto(len(narrow.transcript)).head == narrow.transcript.head


async def _read(sessions: Sessions, stored: StoredSession, messages: int, due: datetime) -> Source:
    """Read a conversation. Notes may have replaced its messages since."""
    line = stored.transcript
    if len(line) < messages or not _was_said(line, messages, due):
        earlier = [each.transcript for each in await sessions.earlier(stored.header.id)]
        lines = [each for each in (line, *reversed(earlier)) if len(each) >= messages]
        then = (each for each in lines if _was_said(each, messages, due))
        line = next(then, lines[0] if lines else line)
    return Source(stored.header.id, line.upto(messages))


def _was_said(line: Transcript, messages: int, due: datetime) -> bool:
    """Tell whether so many messages of this line had been said by then."""
    return line.nodes[messages - 1].at <= due


def join(sources: Sequence[Source]) -> Source:
    """Return several conversations as one that is only read."""
    joined = Transcript(sources[0].transcript.root)
    origins: list[tuple[SessionId, int]] = []
    for source in sources:
        for number, node in enumerate(source.transcript.nodes, 1):
            joined = joined.then(node.message, node.trust, node.at)
            origins.append((source.session, number))
    return Source(sources[0].session, joined, tuple(origins))


def find_starts(source: Source) -> frozenset[int]:
    """Return the numbers at which another conversation begins."""
    return frozenset(
        place for place, (_, number) in enumerate(source.origins, 1) if number == 1 and place > 1
    )


def split(source: Source) -> dict[SessionId, list[Message]]:
    """Return what was said in each conversation, without the examples of a template."""
    said: dict[SessionId, list[Message]] = {}
    for place, message in enumerate(source.transcript, 1):
        if not message.template:
            said.setdefault(source.origin(place)[0], []).append(message)
    return said


def find_topics(topics: Topics, nodes: Sequence[Node]) -> Topics:
    """Return the topics to ask about. A short exchange without work, correction or explanation holds no
    procedure, and the question about skills is the longest part of its review."""
    said = [node.message for node in nodes if not node.message.template]
    owners = [node.message.text for node in nodes if node.is_owners and not node.message.template]
    if any(message.calls for message in said) or any(len(text) > EXPLAINED for text in owners):
        return topics
    if any(find_cue(text) in TAUGHT for text in owners):
        return topics
    return topics - {"skills"} or topics
