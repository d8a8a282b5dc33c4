"""Share one person's knowledge with the team: propose, approve, reject, undo.

Every change is made by the person whose stores these are. No argument names a person, so nobody can act for
somebody else.
"""

from collections.abc import Sequence
from functools import cached_property

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.ledger import (
    MEMORY,
    USER,
    Actor,
    Author,
    ChangeId,
    ChangeKind,
    ChangeQuery,
    ChangeState,
    Entry,
)
from hone.core.screen import screen
from hone.core.skill import ORIGIN, SkillOrigin
from hone.core.trust import Trust
from hone.features.team.preparing import Preparing, check_shareable
from hone.features.team.reading import SharedReader, find_sharer
from hone.features.team.values import ENTRY, ShareReport, TeamProposal, may_undo
from hone.knowledge.folding import load_steps
from hone.knowledge.journal import Add, entries
from hone.knowledge.keeper import Keeper
from hone.knowledge.places import is_journal, name_of
from hone.knowledge.served import ServedKnowledge
from hone.knowledge.skills.folder import SetFiles
from hone.knowledge.validity import pin
from hone.knowledge.verdicts import KeeperRules
from hone.stores.home import Stores

TEAM = "team"
"""The owner of shared rows. No user has this name."""
LIMIT = 4_000
"""The most characters of all entries together: they are in everybody's prompt."""
RULES = KeeperRules({MEMORY: LIMIT, USER: 0, "project": 0}, {})
NEEDED = "A team needs a PostgreSQL database that its members share; docs/deploy.md shows how to set one up."
OTHER = "This is no longer what was shown; nothing was changed. Look at it again."


class TeamKnowledge:
    """The team's knowledge as one person sees and changes it. Raises Refused without a shared database."""

    def __init__(self, hone: Hone) -> None:
        stores = hone.stores
        if stores.open_owner is None or stores.owner == TEAM:
            raise Refused(NEEDED)
        self._hone = hone
        self.me = stores.owner
        self._team: Stores = stores.open_owner(TEAM, hone.home)
        ledger = self._team.ledger
        self.keeper = Keeper(ledger, ServedKnowledge(ledger, hone.home), hone.clock, hone.say, RULES)
        self.reader = SharedReader(self.keeper)

    @cached_property
    def _preparing(self) -> Preparing:
        return Preparing(self._hone, self.keeper)

    # Propose

    async def prepare_entry(self, match: str) -> ShareReport:
        """Return one of the person's entries as it would be shared. Raises Refused if none or several
        match."""
        return await self._preparing.prepare_entry(match)

    async def prepare_skill(self, name: str) -> ShareReport:
        """Return one of the person's skills as it would be shared. Raises Missing or Refused."""
        return await self._preparing.prepare_skill(name)

    async def propose(self, shown: ShareReport, seal: str, reason: str = "") -> Entry:
        """Propose something, for a second person to approve. `seal` is that of what the sharer has seen. The
        source conversation stays with the sharer. Raises Refused."""
        check_shareable(shown)
        if seal != shown.seal:
            raise Refused(OTHER)
        if screen(reason).secrets:
            raise Refused("The reason holds what looks like a secret; nothing was proposed.")
        author = Author(Actor.MEMBER, reason=screen(reason).text, trust_floor=shown.trust, platform=self.me)
        if shown.skill:
            files = {path: text.encode() for path, text in shown.texts.items()}
            origin = {ORIGIN: SkillOrigin.USER.encode()}
            return await self.keeper.edit_skill(shown.skill, SetFiles({**files, **origin}), author)
        [entry] = await self.keeper.note([(MEMORY, Add(pin(shown.texts[ENTRY], on=False)))], author)
        return entry

    # Answer

    async def pending(self) -> list[TeamProposal]:
        """Return the pending proposals, oldest first."""
        return [await self._proposal(each) for each in await self.keeper.ledger.pending()]

    async def proposal(self, id: ChangeId) -> TeamProposal:
        """Return the proposal with this number, as it must be seen before approval. Raises Refused."""
        entry = await self.keeper.ledger.entry(id)
        if entry.change.standing is not ChangeState.PENDING or entry.settled:
            raise Refused(f"Nothing waits under number {id}. hone team pending lists what does.")
        return await self._proposal(entry)

    async def prepare_approval(self, id: ChangeId) -> TeamProposal:
        """Return a proposal for a second person. Raises Refused for the sharer."""
        waiting = await self.proposal(id)
        if waiting.sharer == self.me:
            raise Refused(f"You proposed change {id} yourself; a second person must approve it.")
        return waiting

    async def approve(self, id: ChangeId, seal: str) -> Entry:
        """Make a proposal take effect for everybody. The sharer cannot. `seal` is that of what was seen.
        Raises Refused."""
        waiting = await self.prepare_approval(id)
        check_shareable(waiting.shown)
        if seal != waiting.shown.seal:
            raise Refused(OTHER)
        return await self.keeper.approve(id, self._author())

    async def reject(self, id: ChangeId, reason: str = "") -> Entry:
        """Reject a proposal. The sharer may, too."""
        await self.proposal(id)
        return await self.keeper.reject(id, self._author(reason))

    async def undo(self, id: ChangeId, reason: str = "") -> Entry:
        """Withdraw what the team shares, from everybody's next prompt. Undoing this again does not restore
        it: it must be proposed again. Raises Refused for anyone but the sharer, the approver and the
        operator."""
        entry = await self._approval(id)
        sharer = await find_sharer(self.keeper, entry)
        if not may_undo(self.me, sharer, entry.change.author.name):
            raise Refused(
                f"Change {id} was shared by {sharer} and approved by {entry.change.author.name}; "
                "only they and the operator can undo it."
            )
        return await self.keeper.undo(entry.id, self._author(reason))

    async def log(self, limit: int) -> Sequence[Entry]:
        """Return the changes of the team's knowledge, newest first."""
        return await self.keeper.ledger.entries(ChangeQuery(limit=limit))

    async def _approval(self, id: ChangeId) -> Entry:
        """Return the approval behind a number: its own, or that of the proposal."""
        entry = await self.keeper.ledger.entry(id)
        if entry.change.standing is ChangeState.PENDING and entry.settled:
            entry = await self.keeper.ledger.entry(entry.settled)
        if entry.change.kind is not ChangeKind.APPROVE:
            raise Refused(f"Change {id} shares nothing with the team. hone team list shows what is shared.")
        return entry

    async def _proposal(self, entry: Entry) -> TeamProposal:
        author = entry.change.author
        texts = await self.read_texts(entry)
        name = "" if is_journal(entry.change.target) else name_of(entry.change.target)
        cause = entry.change.cause.partition("; ")[2]
        remarks = (f"Note that {cause}.",) if cause else ()
        shown = await self._preparing.show(name, texts, author.trust_floor, remarks)
        return TeamProposal(entry.id, entry.at, author.name, author.reason, shown)

    async def read_texts(self, entry: Entry) -> dict[str, str]:
        """Return what a proposal adds: the entry, or all files of the skill in their new state."""
        steps = await load_steps(self.keeper.ledger, entry.change)
        if is_journal(entry.change.target):
            [step] = steps
            before, after = (entries((each or b"").decode()) for each in (step.before, step.after))
            return {ENTRY: "\n".join(each for each in after if each not in before)}
        held = await self.reader.files(name_of(entry.change.target))
        made = {step.path: step.after for step in steps}
        texts = {path: data for path, data in {**held, **made}.items() if data is not None}
        return {path: data.decode() for path, data in sorted(texts.items()) if not path.startswith("@")}

    def _author(self, reason: str = "") -> Author:
        if screen(reason).secrets:
            raise Refused("The reason holds what looks like a secret; nothing was changed.")
        return Author(Actor.MEMBER, reason=screen(reason).text, trust_floor=Trust.LOCAL, platform=self.me)
