"""Find the change that added an entry of the journal, and the owner's words that it was made of.

An agent may phrase the same thing differently each time, or in another language. The owner's own words about
it are more alike, so they are compared, too. They are read from the conversations: the ledger keeps none.
"""

from collections.abc import Mapping, Sequence

from hone.core.errors import StoreError
from hone.core.ledger import ChangeId, ChangeQuery, ChangeState, Entry, Evidence, Ledger, Target
from hone.core.ports import Sessions
from hone.core.trust import Trust
from hone.knowledge.evidence import find_cited
from hone.knowledge.folding import load_all_steps
from hone.knowledge.journal import compare
from hone.knowledge.resemblance import is_same_subject
from hone.knowledge.sentences import sentences

ACTIVE = ChangeState.ACTIVE


class Origins:
    """Without `sessions` no words are known."""

    def __init__(self, ledger: Ledger, sessions: Sessions | None) -> None:
        self._ledger = ledger
        self._sessions = sessions
        self._words: dict[ChangeId, Sequence[str]] = {}
        self._brought: dict[Target, dict[str, Entry]] = {}
        self._upto: dict[Target, ChangeId] = {}

    async def find(self, target: Target, entry: str) -> Entry | None:
        """Return the newest change that added an entry; None if no change has."""
        known, upto = self._brought.setdefault(target, {}), self._upto.get(target)
        latest = await self._ledger.latest()
        if latest != upto:
            known |= await self._load(ChangeQuery(target=target, after=upto))
            self._upto[target] = latest
        return known.get(entry)

    async def find_words(self, target: Target, entry: str) -> Sequence[str]:
        """Return the owner's sentences in the messages that an entry rests on."""
        origin = await self.find(target, entry) if self._sessions else None
        if origin is None:
            return ()
        if origin.id not in self._words:
            cited = [each for each in origin.change.author.evidence if each.trust is Trust.OWNER]
            self._words[origin.id] = [said for each in cited for said in await self._read(each)]
        return self._words[origin.id]

    async def _load(self, query: ChangeQuery) -> Mapping[str, Entry]:
        """Return the entries that changes added, each with the newest of these."""
        made = [each for each in await self._ledger.entries(query) if each.change.standing is ACTIVE]
        found: dict[str, Entry] = {}
        for change, steps in zip(
            made, await load_all_steps(self._ledger, [each.change for each in made]), strict=True
        ):
            for step in steps:
                for text in compare(step.before or b"", step.after or b"")[0]:
                    found.setdefault(text, change)
        return found

    async def _read(self, evidence: Evidence) -> list[str]:
        assert self._sessions
        try:
            nodes = (await self._sessions.load(evidence.session)).transcript.nodes
        except StoreError:
            return []
        cited = find_cited(nodes, evidence)
        text = cited.message.text if cited else ""
        return [text[start:end] for start, end in sentences(text)]


def speak_of_the_same(said: Sequence[str], before: Sequence[str]) -> bool:
    """Tell whether the owner's words and earlier ones are about the same subject."""
    return any(is_same_subject(one, other) for one in said for other in before)
