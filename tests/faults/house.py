"""What must hold of a conversation, however a turn ended."""

from collections.abc import Callable

from hone import Hone
from hone.core.clock import Clock, ManualClock
from hone.core.messages import user
from hone.core.turn import Stop, Turn
from hone.models.anthropic import AnthropicMessages
from hone.models.endpoint import Endpoint, WireModel
from hone.models.fake_provider.shapes import Format
from hone.models.http import Http
from hone.models.openai import OpenAIChat
from hone.models.responses import OpenAIResponses
from hone.runtime.session import Session
from tests.doubles.requests import problems
from tests.given import NOON
from tests.rig import faults

FORMATS: tuple[Format, ...] = ("openai", "anthropic", "responses")
MODELS: dict[Format, Callable[[Http, Clock, Endpoint], WireModel]] = {
    "openai": OpenAIChat,
    "anthropic": AnthropicMessages,
    "responses": OpenAIResponses,
}
LONGEST = 600


def unplain(sentence: str) -> list[str]:
    """Why this cannot be shown to a user as it stands."""
    wrong = {
        "nothing is said": not sentence.strip(),
        "more than one line": len(sentence.splitlines()) > 1,
        "hidden characters": not sentence.isprintable(),
        "a traceback": "Traceback" in sentence or 'File "' in sentence,
        "markup": "<html" in sentence.lower() or "</" in sentence,
        "no full stop": not sentence.rstrip(")").endswith((".", "…")),
        f"over {LONGEST} characters": len(sentence) > LONGEST,
    }
    return [f"{reason}: {sentence[:LONGEST]!r}" for reason, true in wrong.items() if true]


def unended(turn: Turn) -> list[str]:
    """Why this is not the end of a turn that a user could accept."""
    if turn.stop is Stop.ANSWERED:
        return [] if turn.text.strip() and not turn.error else ["an answer without a word"]
    return unplain(turn.error)


def next_body(format: Format, session: Session, words: str = "and now?") -> bytes:
    """What would be sent if the user went on."""
    endpoint, http, clock = Endpoint("stage", ""), Http(ManualClock()), ManualClock()
    adapter = MODELS[format](http, clock, endpoint)
    asked = session.transcript.then(user(words), session.transcript.trust, NOON)
    return adapter.body(session.agent.prefix, asked)


async def unsound(format: Format, hone: Hone, session: Session) -> list[str]:
    """Why this conversation could not go on: in memory, for the provider, or in the store."""
    stored = await hone.sessions.load(session.id)
    wrong = faults(list(session.transcript))
    wrong += problems(format, next_body(format, session))
    if stored.transcript.head != session.transcript.head:
        wrong.append(f"{len(stored.transcript)} messages are stored, {len(session.transcript)} were said")
    return wrong
