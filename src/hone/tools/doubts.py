"""Collect the reasons not to run a command right away, and ask the owner about them in one question.

If nobody can be asked, the answer is no. An approval covers exactly the text in the question.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from hone.core.messages import sound
from hone.core.permit import Effect
from hone.core.tool import Outcome
from hone.core.tool_context import Question, ToolContext
from hone.core.trust import Trust
from hone.sandbox.choice import SandboxChoice
from hone.sandbox.spec import Claim

Network = Literal["ask", "allow", "never"]
"""The owner's setting for calls that want the network."""


class Doubt(Struct, frozen=True):
    """`text` is a whole sentence; `pattern` is what an answer for always would cover."""

    text: str
    pattern: str


class Danger(Struct, frozen=True):
    """`reason` completes "It …"; `pattern` is what an answer for always would cover: these very commands."""

    reason: str
    pattern: str


Judge = Callable[[str], Danger | None]


class ApprovalRules(Struct, frozen=True):
    """What the owner decided beforehand. `trust_floor` labels what a command brings from the folder."""

    danger: Judge
    network: Network = "ask"
    trust_floor: Trust = Trust.FOREIGN

    def trust(self, choice: SandboxChoice, *, network: bool) -> Trust:
        """The best label that what a command says may carry."""
        return Trust.FOREIGN if network or Claim.NETWORK not in choice.held else self.trust_floor

    async def refusal(
        self,
        context: ToolContext,
        text: str,
        choice: SandboxChoice,
        *,
        place: str,
        network: bool,
        code: bool = False,
    ) -> Outcome | None:
        """Why the text may not run in this place; None if it may."""
        if network and not self._may_use_network(context):
            return refused("Not run: the network is not permitted here. Go on without it.")
        if not network and Claim.NETWORK not in choice.held:
            return refused("Not run: nothing here keeps it from the network, so ask with network=true.")
        doubts = [*self._doubts(text, choice, network=network, code=code)]
        if not doubts:
            return None
        reasons = " ".join(each.text for each in doubts)
        pattern = "; ".join(each.pattern for each in doubts)
        asked = f"Run this {'code' if code else 'command'} in {sound(place)}? {reasons}"
        if await context.consents(Question(asked, text, pattern)):
            return None
        answer = "the owner said no" if context.agent.permit.attended else "nobody is there to be asked"
        return refused(f"Not run: it needs the owner's consent, and {answer}. {reasons}")

    def _doubts(self, text: str, choice: SandboxChoice, *, network: bool, code: bool) -> Iterator[Doubt]:
        danger = None if code else self.danger(text)
        if danger:
            yield Doubt(f"It {danger.reason}.", danger.pattern)
        if network and self.network != "allow":
            yield Doubt("It wants the network.", f"with the network: {text}")
        missing = sorted(choice.missing(network=network))
        if missing:
            sentence = (
                f"The sandbox in force ({choice.mode.name}) does not keep it from {', '.join(missing)}."
            )
            yield Doubt(sentence, f"outside a sandbox: {text}")

    def _may_use_network(self, context: ToolContext) -> bool:
        return self.network != "never" and context.agent.permit.allows(frozenset({Effect.NETWORK}))


def refused(reason: str) -> Outcome:
    """In our own words, about the model's own."""
    return Outcome(reason, failed=True, trust=Trust.AGENT)
