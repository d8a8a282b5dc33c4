"""Decide whether an imported conversation is a reason to look back, by the rules of Hone's own."""

from collections.abc import Collection, Iterator, Sequence
from datetime import timedelta

from hone.core.ids import SessionId
from hone.core.jobs import (
    Counters,
    Look,
    PendingLook,
    Topic,
    TopicCount,
    Topics,
    TurnSummary,
    count_topics,
)
from hone.core.messages import Role
from hone.core.ports import StoredSession
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.knowledge.reasons import count_turns, find_cue
from hone.learning.lookback import LATEST
from hone.prompt.review import digest, text
from hone.runtime.triggers import FIXED, count_turn, explain, summarize


class LookPlan:
    """`topics` are the topics of reviews; `known` are sessions that were or will be reviewed."""

    def __init__(self, topics: Sequence[Topic], known: Collection[SessionId] = ()) -> None:
        self._topics = topics
        self.known = frozenset(known)

    @property
    def topics(self) -> Topics:
        return frozenset(topic.name for topic in self._topics if topic.interval)

    def look(self, transcript: Transcript, after: int = 0) -> Look | None:
        """Return when to look back over the messages after this many; None if nobody said anything. A
        conversation may continue elsewhere: it is due after some silence."""
        new = transcript.nodes[after:]
        said = [node for node in new if _counts(node, transcript)]
        if not said or not self.topics:
            return None
        turns = list(self._summarize(transcript, after))
        fixed = FIXED if any(turn.fixed for turn in turns) else ""
        texts = [node.message.text for node in said if node.is_owners]
        cue = self._find_due(turns) or next(filter(None, map(find_cue, texts)), fixed)
        weight = sum(map(count_turns, texts)) + len(said) - len(texts)
        at = transcript.nodes[-1].at + timedelta(seconds=LATEST)
        return Look(at, cue, weight, transcript.trust is Trust.FOREIGN, self.topics, is_examined=True)

    def pending(self, found: StoredSession, after: int = 0) -> PendingLook | None:
        """Return the look as it would be stored, for an estimate."""
        look, header = self.look(found.transcript, after), found.header
        if look is None:
            return None
        place = (header.id, header.id, len(found.transcript), header.folder)
        return PendingLook(*place, look.at, look.cue, look.turns, look.tainted)

    def measure(self, transcript: Transcript) -> int:
        """Return how many bytes its review would read."""
        return len(digest(self.topics, transcript.nodes, text).encode())

    def count_new(self, transcript: Transcript, after: int) -> Sequence[TopicCount]:
        """Return the counts of the messages after this many, as one turn. A counter that was reset in between
        only gets what came after that."""
        merged: dict[str, TopicCount] = {}
        for turn in self._summarize(transcript, after):
            for count in count_turn(turn, self._topics):
                before = merged.get(count.topic)
                adds = count.adds + (before.adds if before and not count.resets else 0)
                merged[count.topic] = replace(count, adds=adds)
        return tuple(merged.values())

    def _find_due(self, turns: Sequence[TurnSummary]) -> str:
        """Return why a review is due after these turns; empty if none is."""
        counters: Counters = {}
        due: set[str] = set()
        for turn in turns:
            counters, now, _ = count_topics(counters, count_turn(turn, self._topics))
            due |= now
        return " and ".join(explain(topic) for topic in self._topics if topic.name in due)

    def _summarize(self, transcript: Transcript, after: int) -> Iterator[TurnSummary]:
        """Yield what each turn that a person began adds."""
        turn: list[Node] = []
        for node in transcript.nodes[after:]:
            if _counts(node, transcript) and turn:
                yield summarize(each.message for each in turn)
                turn = []
            if turn or _counts(node, transcript):
                turn.append(node)
        if turn:
            yield summarize(each.message for each in turn)


def _counts(node: Node, transcript: Transcript) -> bool:
    """Tell whether a person said it. If nothing is the owner's, the user's role decides: what is learned from
    it waits for the owner."""
    if node.is_owners:
        return True
    return node.message.role is Role.USER and not any(each.is_owners for each in transcript.nodes)
