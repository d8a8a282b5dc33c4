"""Verify by ablation which items an answer needed: the turn again with all items, and without one.

A run agrees with the answer as far as its calls and its words are the same. Of a pair of runs, the one with
the item wins if it agrees more. If the item does nothing, both runs are alike, and a win is as likely as a
loss. So a sign test decides, with looks after 6, 10, 14 and 20 pairs that differ. If the item does nothing,
it says otherwise in at most 4.9% of all cases: tests/features/test_ablation.py adds them up.
"""

from collections.abc import Callable, Sequence
from enum import StrEnum

from msgspec import Struct

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.intervals import interval
from hone.core.messages import Role
from hone.core.transcript import Node
from hone.core.turn import Turn
from hone.features.attribution.ablating import GivenTurn, give, leave_out
from hone.features.attribution.measure import stems
from hone.features.attribution.rerunning import TurnRoom
from hone.features.attribution.scratch import scratch_folder
from hone.features.attribution.values import AnsweredTurn, PromptItem

LOOKS = {6: 0, 10: 1, 14: 2, 20: 3}
"""By the number of pairs that differ, how many of them may be losses."""
PAIRS = 12
TIES = 4
"""If this many pairs at the beginning are all the same, the test ends."""
Progress = Callable[[int], None]
"""Hears how many runs are done."""


class AblationVerdict(StrEnum):
    NEEDED = "needed"
    """The answer comes out differently without it."""
    SAME = "same"
    """No difference was found."""
    DESPITE = "despite"
    """Without it, the answer comes out more often."""
    UNTRIED = "untried"


class Ablation(Struct, frozen=True):
    """Agreement with the answer, from 0 to 1, by pair: with the item, and without it."""

    item: PromptItem
    pairs: tuple[tuple[float, float], ...]
    verdict: AblationVerdict
    refused: str = ""

    @property
    def difference(self) -> float:
        return sum(one - other for one, other in self.pairs) / len(self.pairs) if self.pairs else 0.0

    @property
    def bounds(self) -> tuple[float, float]:
        """Return where the difference lies, with a confidence of 95%."""
        return interval([one - other for one, other in self.pairs]) if self.pairs else (0.0, 0.0)


class Verification(Struct, frozen=True):
    """The verdict on each item, and the cost."""

    ablations: tuple[Ablation, ...]
    runs: int
    tokens: int
    cost: float | None


class Verifier:
    """Repeats the turn of one answer. All tests share the runs with all items."""

    def __init__(self, owner: Hone, answer: AnsweredTurn, pairs: int = PAIRS) -> None:
        self._owner = owner
        self._answer = answer
        self._pairs = pairs
        self._turns: list[Turn] = []

    async def verify(self, items: Sequence[PromptItem], tell: Progress = lambda _: None) -> Verification:
        """Verify items. Raises ModelError if the provider gives no answer."""
        with scratch_folder() as root:
            room = TurnRoom(self._owner, self._answer, root)
            given = give(self._answer)
            whole: list[float] = []
            found = [await self._test(room, given, item, whole, tell) for item in items]
        usage = [each for turn in self._turns for each in turn.usage]
        costs = [each.cost for each in usage if each.cost is not None]
        tokens = sum(each.input + each.output for each in usage)
        cost = sum(costs) if usage and len(costs) == len(usage) else None
        return Verification(tuple(found), len(self._turns), tokens, cost)

    async def _test(
        self, room: TurnRoom, given: GivenTurn, item: PromptItem, whole: list[float], tell: Progress
    ) -> Ablation:
        try:
            without = leave_out(given, item)
        except (Refused, ValueError) as error:
            return Ablation(
                item, (), AblationVerdict.UNTRIED, str(error) if isinstance(error, Refused) else _LOST
            )
        pairs: list[tuple[float, float]] = []
        while len(pairs) < self._pairs and not is_over(pairs, self._pairs):
            if len(whole) == len(pairs):
                whole.append(await self._run(room, given, tell))
            pairs.append((whole[len(pairs)], await self._run(room, without, tell)))
        return Ablation(item, tuple(pairs), decide(pairs))

    async def _run(self, room: TurnRoom, given: GivenTurn, tell: Progress) -> float:
        turn = await room.run(given)
        self._turns.append(turn)
        tell(len(self._turns))
        return agree(self._answer.turn, turn.nodes)


_LOST = "It was not found in the stored prompt."


def count(pairs: Sequence[tuple[float, float]]) -> tuple[int, int]:
    """Return wins and losses."""
    return sum(one > other for one, other in pairs), sum(one < other for one, other in pairs)


def decide(pairs: Sequence[tuple[float, float]]) -> AblationVerdict:
    """Return the first decision in the order of the pairs. Later pairs do not change it."""
    for end in range(1, len(pairs) + 1):
        wins, losses = count(pairs[:end])
        allowed = LOOKS.get(wins + losses, -1)
        if min(wins, losses) <= allowed:
            return AblationVerdict.NEEDED if losses <= allowed else AblationVerdict.DESPITE
    return AblationVerdict.SAME


def is_over(pairs: Sequence[tuple[float, float]], most: int) -> bool:
    """Tell whether more pairs are useless: it is decided, or no look within `most` pairs can decide it."""
    wins, losses = count(pairs)
    if decide(pairs) is not AblationVerdict.SAME or (len(pairs) >= TIES and not wins + losses):
        return True
    reach = wins + losses + most - len(pairs)
    return not any(
        wins + losses <= look <= reach and min(wins, losses) <= allowed for look, allowed in LOOKS.items()
    )


def agree(original: Sequence[Node], again: Sequence[Node]) -> float:
    """Return how much of the original's calls and answer was reproduced: the mean of both shares."""
    answers = _dice(stems(original[-1].message.text), stems(again[-1].message.text) if again else frozenset())
    calls, others = _calls(original), _calls(again)
    return (answers + _dice(calls, others)) / 2 if calls or others else answers


def _calls(nodes: Sequence[Node]) -> frozenset[str]:
    """Return the calls, each as a tool with each of its words."""
    found: set[str] = set()
    for node in nodes:
        if node.message.role is Role.ASSISTANT:
            for call in node.message.calls:
                found |= {f"{call.name} {stem}" for stem in stems(call.arguments)} | {call.name}
    return frozenset(found)


def _dice(one: frozenset[str], other: frozenset[str]) -> float:
    return 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0
