"""The permissions of one conversation: the mode, the rules, the answers so far, and how to ask."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from hone.core.errors import HoneError
from hone.core.permissions import Action, Answer, Ask, Mode, Question, Request, nobody
from hone.core.transcript import Transcript
from hone.core.visible import one_line
from hone.runtime.permissions.decide import (
    Decision,
    PathRules,
    Ruling,
    judge_command,
    judge_file,
    judge_use,
)
from hone.runtime.permissions.network import judge_network, named_hosts
from hone.runtime.permissions.rules import Rule, RuleSet, exact_rule, match_use

Network = Literal["ask", "allow", "never"]
_QUESTIONS = {
    Action.READ: "Read this file?",
    Action.WRITE: "Change this file?",
    Action.RUN: "Run this?",
    Action.FETCH: "Fetch this page?",
    Action.USE: "Make this call?",
}
ALONE = "This needs the user's consent, and nobody is there to ask."


class OwnerPermissions:
    """`rules` are read again for each request, so that a rule counts as soon as it is written. `remember`
    stores a rule permanently; it returns whether it could."""

    def __init__(
        self,
        places: PathRules,
        rules: Callable[[], RuleSet],
        remember: Callable[[Rule], bool],
        *,
        ask: Ask = nobody,
        mode: Mode = Mode.AUTO,
        network: Network = "ask",
    ) -> None:
        self.mode = mode
        self.asked = 0
        self._places = places
        self._rules = rules
        self._remember = remember
        self._ask = ask
        self._network = network
        self._session: set[Rule] = set()
        self._hosts: set[str] = set()
        self._any_host = False
        self._turn = asyncio.Lock()

    def switch(self, mode: Mode) -> None:
        self.mode = mode

    def hear(self, transcript: Transcript) -> None:
        self._hosts |= named_hosts(transcript)

    def judge(self, request: Request) -> Ruling:
        """Decide by mode and rules, without asking. Raises HoneError if the rules cannot be read."""
        rules = self._merged()
        rulings = []
        if request.action is Action.RUN:
            rulings.append(judge_command(request, self.mode, rules))
        elif request.action is Action.USE:
            rulings.append(judge_use(request, self.mode, rules))
        elif request.action is not Action.FETCH:
            rulings.append(judge_file(request, self.mode, rules, self._places))
        if _is_outward(request):
            rulings.append(
                judge_network(request, self.mode, rules, self._network, self._hosts, any_host=self._any_host)
            )
        return combine(rulings)

    async def refusal(self, request: Request, transcript: Transcript, *, attended: bool) -> str:
        """Return why a request is refused; empty if it is allowed. Unreadable rules refuse everything: they
        may deny this."""
        self.hear(transcript)
        try:
            ruling = self.judge(request)
            if ruling.decision is Decision.ASK:
                async with self._turn:
                    ruling = self.judge(request)  # the last answer may cover this one, too
                    if ruling.decision is Decision.ASK:
                        return await self._consult(request, ruling, attended=attended)
        except HoneError as error:
            return str(error)
        return ruling.reason if ruling.decision is Decision.DENY else ""

    async def ask(self, question: Question, tool: str) -> Answer:
        """Ask what a tool wants to know. A lasting answer is a rule `tool: pattern`."""
        covered = exact_rule(tool, one_line(question.pattern, 500)) if question.pattern else ()
        asked = Question(question.text, question.detail, "\n".join(map(str, covered)), wanted=question.wanted)
        async with self._turn:
            try:
                rules = self._merged()
            except HoneError as error:
                return Answer("no", str(error))
            settled = self._settled(covered, rules)
            if settled:
                return settled
            answer = await self._put(asked)
            self._keep(answer, covered)
        return Answer.NO if answer == Answer.NOBODY else answer

    def _settled(self, covered: tuple[Rule, ...], rules: RuleSet) -> Answer | None:
        """Return the answer that the rules or the mode give; None if the owner must be asked."""
        if any(match_use(rules.deny, each) for each in covered):
            return Answer.NO
        if self._session.intersection(covered):
            return Answer.SESSION
        if any(match_use(rules.allow, each) for each in covered):
            return Answer.ALWAYS
        return Answer.ONCE if self.mode is Mode.FULL else None

    def reader(self) -> Callable[[Path], bool]:
        try:
            rules = self._merged()
        except HoneError:
            return lambda _: False

        def may_read(path: Path) -> bool:
            request = Request("search_files", Action.READ, str(path))
            return judge_file(request, self.mode, rules, self._places).decision is Decision.ALLOW

        return may_read

    def _merged(self) -> RuleSet:
        kept = self._rules()
        return RuleSet((*kept.allow, *self._session), kept.deny)

    async def _consult(self, request: Request, ruling: Ruling, *, attended: bool) -> str:
        answer = Answer.NOBODY
        if attended:
            pattern = "\n".join(map(str, ruling.rules))
            text = f"{request.question or _QUESTIONS[request.action]} {ruling.reason}".strip()
            detail = request.detail or request.subject
            answer = await self._put(Question(text, detail, pattern, ruling.network))
        if answer == Answer.NOBODY:
            return f"{ALONE} {ruling.reason}".strip()
        if not answer.is_yes:
            said = f": {answer.reason}" if answer.reason else ""
            return f"The user said no{said}".rstrip(".") + "."
        self._any_host = self._any_host or (answer.choice == Answer.ANY_HOST.choice and ruling.network)
        self._keep(answer, ruling.rules)
        return ""

    async def _put(self, question: Question) -> Answer:
        """Put a question to the owner. Count it if somebody was there."""
        answer = await self._ask(question)
        self.asked += answer != Answer.NOBODY
        return answer

    def _keep(self, answer: Answer, rules: tuple[Rule, ...]) -> None:
        """Keep an answer. A stored rule is not kept here, too, so that it ends when the owner removes it."""
        if answer.choice == Answer.SESSION.choice:
            self._session.update(rules)
        elif answer.choice == Answer.ALWAYS.choice:
            self._session.update(rule for rule in rules if not self._remember(rule))


def _is_outward(request: Request) -> bool:
    return request.network or request.action is Action.FETCH


def combine(rulings: list[Ruling]) -> Ruling:
    """Deny if one ruling denies; otherwise ask one question about everything."""
    denied = next((each for each in rulings if each.decision is Decision.DENY), None)
    if denied:
        return denied
    asked = [each for each in rulings if each.decision is Decision.ASK]
    if not asked:
        reasons = dict.fromkeys(each.reason for each in rulings if each.reason)
        return Ruling(Decision.ALLOW, " ".join(reasons))
    reason = " ".join(filter(None, (each.reason for each in asked)))
    rules = tuple(rule for each in asked for rule in each.rules)
    named = all(each.rules for each in asked)  # a part without a rule would be asked about again
    return Ruling(Decision.ASK, reason, rules if named else (), any(each.network for each in asked))
