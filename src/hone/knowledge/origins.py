"""Find the owner's words that an entry of the journal was made of.

An agent may put the same matter in other words each time, or in another language. The owner's own words about
it are more alike, so they are compared, too. They are read in the conversations: the ledger keeps none.
"""

from collections.abc import Sequence

from hone.core.errors import StoreError
from hone.core.ledger import ChangeId, Evidence, Ledger, Target
from hone.core.ports import Sessions
from hone.core.trust import Trust
from hone.knowledge.resemblance import is_same_subject
from hone.knowledge.sentences import sentences
from hone.knowledge.withdrawn import find_origin


class Origins:
    """Without `sessions` no words are known."""

    def __init__(self, ledger: Ledger, sessions: Sessions | None) -> None:
        self._ledger = ledger
        self._sessions = sessions
        self._known: dict[ChangeId, Sequence[str]] = {}

    async def find_evidence(self, target: Target, entry: str) -> Sequence[Evidence]:
        """Return the messages that an entry rests on."""
        origin = await find_origin(self._ledger, target, entry)
        return origin.change.author.evidence if origin else ()

    async def find_words(self, target: Target, entry: str) -> Sequence[str]:
        """Return the owner's sentences in the messages that an entry rests on."""
        origin = await find_origin(self._ledger, target, entry) if self._sessions else None
        if origin is None:
            return ()
        if origin.id not in self._known:
            cited = [each for each in origin.change.author.evidence if each.trust is Trust.OWNER]
            self._known[origin.id] = [said for each in cited for said in await self._read(each)]
        return self._known[origin.id]

    async def _read(self, evidence: Evidence) -> list[str]:
        assert self._sessions
        try:
            nodes = (await self._sessions.load(evidence.session)).transcript.nodes
        except StoreError:
            return []
        texts = [node.message.text for node in nodes if node.digest == evidence.digest][:1]
        return [text[start:end] for text in texts for start, end in sentences(text)]


def speak_of_the_same(said: Sequence[str], before: Sequence[str]) -> bool:
    """Whether the owner's words and earlier ones are about the same subject."""
    return any(is_same_subject(one, other) for one in said for other in before)
