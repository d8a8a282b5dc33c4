"""What the owner has agreed to: once, for this session, or always for a pattern."""

from hone.core.tool_context import Answer, Ask, Question
from hone.runtime.lists import OwnersList


class Consent:
    """Asks only what was not answered before."""

    def __init__(self, ask: Ask, always: OwnersList) -> None:
        self._ask = ask
        self._always = always
        self._session: set[str] = set()

    async def __call__(self, question: Question) -> Answer:
        if question.pattern in self._session:
            return Answer.SESSION
        if question.pattern in self._always.items():
            return Answer.ALWAYS
        answer = await self._ask(question)
        if answer in (Answer.SESSION, Answer.ALWAYS):
            self._session.add(question.pattern)
        if answer is Answer.ALWAYS:
            self._always.add(question.pattern)
        return answer
