"""The permissions of one conversation: the mode, the rules, the answers given so far, and who is asked."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Literal

from hone.core.permissions import Action, Answer, Ask, Mode, Question, Request, nobody
from hone.core.transcript import Transcript
from hone.runtime.permissions.decide import ALLOW, Decision, PathRules, Ruling, judge_command, judge_file
from hone.runtime.permissions.network import judge_network, named_hosts
from hone.runtime.permissions.rules import Rule, RuleSet

Network = Literal["ask", "allow", "never"]
_VERBS = {
    Action.READ: "Read this file?",
    Action.WRITE: "Change this file?",
    Action.RUN: "Run this?",
    Action.FETCH: "Fetch this page?",
}


class OwnerPermissions:
    """`rules` are read anew for each request, so that a rule counts from the moment it is written. `remember`
    keeps a rule for good."""

    def __init__(
        self,
        places: PathRules,
        rules: Callable[[], RuleSet],
        remember: Callable[[Rule], None],
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
        self._answers: set[str] = set()
        self._any_host = False
        self._turn = asyncio.Lock()

    async def refusal(self, request: Request, transcript: Transcript, *, attended: bool) -> str:
        ruling = self._judge(request, transcript)
        if ruling.decision is Decision.ASK:
            async with self._turn:
                ruling = self._judge(request, transcript)  # the last answer may cover this one, too
                if ruling.decision is Decision.ASK:
                    return await self._consult(request, ruling, attended=attended)
        return ruling.reason if ruling.decision is Decision.DENY else ""

    async def ask(self, question: Question) -> Answer:
        """Ask what no rule covers, once per pattern and session."""
        if question.pattern and question.pattern in self._answers:
            return Answer.SESSION
        async with self._turn:
            self.asked += 1
            answer = await self._ask(question)
        if answer.is_yes and answer != Answer.ONCE and question.pattern:
            self._answers.add(question.pattern)
        return answer

    def reader(self) -> Callable[[Path], bool]:
        rules = self._merged()

        def may_read(path: Path) -> bool:
            request = Request("search_files", Action.READ, str(path))
            return judge_file(request, self.mode, rules, self._places).decision is Decision.ALLOW

        return may_read

    def _merged(self) -> RuleSet:
        kept = self._rules()
        return RuleSet((*kept.allow, *self._session), kept.deny)

    def _judge(self, request: Request, transcript: Transcript) -> Ruling:
        rules = self._merged()
        rulings = []
        if request.action is Action.RUN:
            rulings.append(judge_command(request, self.mode, rules))
        elif request.action is not Action.FETCH:
            rulings.append(judge_file(request, self.mode, rules, self._places))
        if request.network or request.action is Action.FETCH:
            hosts = named_hosts(transcript)
            rulings.append(
                judge_network(request, self.mode, rules, self._network, hosts, any_host=self._any_host)
            )
        return combine(rulings)

    async def _consult(self, request: Request, ruling: Ruling, *, attended: bool) -> str:
        if not attended or self._ask is nobody:
            return f"It needs the owner's consent, and nobody is there to be asked. {ruling.reason}".strip()
        self.asked += 1
        pattern = "\n".join(map(str, ruling.rules))
        text = f"{request.question or _VERBS[request.action]} {ruling.reason}".strip()
        answer = await self._ask(Question(text, request.detail or request.subject, pattern))
        if not answer.is_yes:
            said = f": {answer.reason}" if answer.reason else ""
            return f"The owner said no{said}".rstrip(".") + "."
        self._keep(answer, ruling)
        return ""

    def _keep(self, answer: Answer, ruling: Ruling) -> None:
        if answer != Answer.ONCE:
            self._session.update(ruling.rules)
        if answer == Answer.ANY_HOST:
            self._any_host = True
        if answer == Answer.ALWAYS:
            for rule in ruling.rules:
                self._remember(rule)


def combine(rulings: list[Ruling]) -> Ruling:
    """Denied if one is; else one question about all that is to be asked."""
    denied = next((each for each in rulings if each.decision is Decision.DENY), None)
    if denied:
        return denied
    asked = [each for each in rulings if each.decision is Decision.ASK]
    if not asked:
        return ALLOW
    reason = " ".join(filter(None, (each.reason for each in asked)))
    return Ruling(Decision.ASK, reason, tuple(rule for each in asked for rule in each.rules))
