"""Erase words that a person shared from the team's rows. Other people's words stay as they are."""

from collections.abc import Sequence

from hone.app import Hone
from hone.core.erasure import Erasure, Scrubber
from hone.core.holding import Occurrence
from hone.core.ledger import Actor, ChangeQuery, ChangeState
from hone.core.loading import import_object
from hone.features.team.part import TeamPart
from hone.features.team.service import TEAM, TeamKnowledge
from hone.features.team.values import OPERATOR
from hone.knowledge.folding import load_steps
from hone.stores.erasure_store import ErasureStore
from hone.stores.tree import stamp

STORE = "hone.stores.postgres.erasure_store:PostgresErasures"
REWRITE = "hone.features.erasing.knowledge:make_rewrite"
HELD = "Colleagues' conversations may still hold what they were told; only they can erase it there."


class TeamEraser:
    """Erases what its owner shared; the operator can erase what anybody shared."""

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    async def find(self, what: Erasure) -> Sequence[Occurrence]:
        words = await self._words(what)
        if not words:
            return ()
        found = await self._store().find(Erasure(words=words))
        return [Occurrence("team knowledge", f"the team's {each.table}", each.count) for each in found]

    async def erase(self, what: Erasure) -> Sequence[str]:
        words = await self._words(what)
        if not words:
            return ()
        rewrite, store = import_object(REWRITE)(Scrubber(words)), self._store()
        await store.erase(Erasure(words=words), rewrite, stamp(self._hone.clock.now()))
        team = self._team
        for entry in await team.keeper.ledger.pending():
            if all(step.before == step.after for step in await load_steps(team.keeper.ledger, entry.change)):
                await team.reject(entry.id)
        await store.finish()
        return [HELD]

    @property
    def _team(self) -> TeamKnowledge:
        return self._hone.part(TeamPart).team

    def _store(self) -> ErasureStore:
        store: ErasureStore = import_object(STORE)(self._hone.settings.database, TEAM)
        return store

    async def _words(self, what: Erasure) -> tuple[str, ...]:
        """Return which of the words this person has shared; the operator may erase any."""
        if not what.words or self._hone.stores.open_owner is None:
            return ()
        team = self._team
        if team.me == OPERATOR:
            return what.words
        made = await team.keeper.ledger.entries(ChangeQuery(actor=Actor.MEMBER))
        texts = [
            text
            for entry in made
            if entry.change.standing is ChangeState.PENDING and entry.change.author.platform == team.me
            for text in (await team.read_texts(entry)).values()
        ]
        return tuple(word for word in what.words if any(Scrubber((word,)).count(text) for text in texts))
