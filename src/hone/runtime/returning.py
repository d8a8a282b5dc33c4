"""Get an answer as a value: ask for JSON that fits a type or a schema, check it, and ask once more if it does
not fit."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from hone.core.errors import AnswerError, Refused
from hone.core.events import Emit, Notice
from hone.core.json_schema import check_schema, find_misfit
from hone.core.messages import Message
from hone.core.regex import regex
from hone.core.trust import Trust
from hone.core.turn import Returned, Stop, Turn
from hone.core.value import replace
from hone.core.visible import visible
from hone.models.forms import make_format
from hone.runtime.session import Session
from hone.runtime.task_runner import Form

_FENCED = regex(r"```[a-zA-Z]*[ \t]*\n(?P<inside>[\s\S]*?)\n?[ \t]*```")
LONGEST = 500
"""The most characters of a reason to show the model and the user."""


class AnswerForm(Struct, frozen=True):
    """The required form of an answer. `decode` makes a value from its JSON, or raises ValueError with the
    reason."""

    schema: Mapping[str, Any]
    decode: Callable[[str], Any]


class SendMessage(Protocol):
    """Takes one turn, as `Session.send` does."""

    async def __call__(
        self,
        message: str | Message,
        emit: Emit,
        *,
        voice: Trust | None = None,
        aside: str = "",
        form: Form | None = None,
    ) -> Turn: ...


def make_form(returns: Any) -> AnswerForm:
    """Return the form for a JSON schema, or for a type that msgspec can decode. Raises Refused."""
    if isinstance(returns, Mapping):
        check_schema(returns)
        return AnswerForm(returns, lambda text: _fit(msgspec.json.decode(text), returns))
    try:
        return AnswerForm(msgspec.json.schema(returns), msgspec.json.Decoder(returns).decode)
    except (TypeError, AttributeError, KeyError) as error:  # KeyError: two types have the same name
        why = " ".join(str(error).split())
        raise Refused(
            f"No answer can be made into {returns!r}: {why}. "
            "Use a msgspec Struct, a dataclass, a TypedDict or a JSON schema."
        ) from error


def _fit(value: Any, schema: Mapping[str, Any]) -> Any:
    if misfit := find_misfit(value, schema):
        raise ValueError(misfit)
    return value


def extract(text: str) -> str:
    """Return the JSON of an answer, without the code fence that models often put around it."""
    stripped = text.strip()
    fenced = _FENCED.fullmatch(stripped)
    return fenced["inside"].strip() if fenced else stripped


def instruct(schema: Mapping[str, Any]) -> str:
    """Tell the model the form of its answer."""
    return (
        "# The form of the answer\n"
        "Work as usual, with tools if they help. Then answer with one JSON value and nothing else: no code "
        "fence, no words before or after it. It must fit this JSON schema:\n"
        + msgspec.json.encode(schema).decode()
    )


def correct(reason: str) -> str:
    """Ask for the answer once more."""
    return (
        f"Your answer does not have the form that was asked for: {reason}. "
        "Answer again, with one JSON value that fits the JSON schema and nothing else."
    )


async def ask_for(
    session: Session,
    form: AnswerForm,
    message: str | Message,
    emit: Emit,
    *,
    voice: Trust | None = None,
    aside: str = "",
    send: SendMessage | None = None,
) -> Returned:
    """Send a message whose answer must have a form. Only the first message of a conversation puts the form
    into the head of its requests: later, that would lose the provider's cache of everything after the
    head."""
    send = send or session.send
    native = None if len(session.transcript) else make_format(form.schema)
    told = "\n".join(filter(None, (aside, instruct(form.schema))))
    turn = await send(message, emit, voice=voice, aside=told, form=native)
    returned, reason = _read(turn, form)
    if not reason:
        return returned
    emit(Notice(f"The answer does not have the form that was asked for: {reason}. Asking once more."))
    again = await send(correct(reason), emit, voice=turn.nodes[-1].trust, form=native)
    whole = replace(again, nodes=(*turn.nodes, *again.nodes), usage=(*turn.usage, *again.usage))
    returned, reason = _read(whole, form)
    if not reason:
        return returned
    failed = (
        f"The answer does not have the form that was asked for, and neither did the one before: {reason}."
    )
    emit(Notice(failed))
    return Returned(whole.ended(Stop.FAILED, failed))


def _read(turn: Turn, form: AnswerForm) -> tuple[Returned, str]:
    """Return the result of a turn, and why its answer does not fit; nothing if it fits or there is none."""
    if turn.stop is not Stop.ANSWERED:
        return Returned(turn), ""
    text = extract(turn.text)
    try:
        return Returned(turn, text, form.decode(text)), ""
    except (ValueError, RecursionError) as error:
        return Returned(turn), visible(str(error))[:LONGEST].rstrip(". ")


async def obtain(
    session: Session, message: str | Message, returns: Any, emit: Emit, voice: Trust | None = None
) -> Any:
    """Send a message and return the answer as a value. Raises AnswerError or Refused."""
    returned = await ask_for(session, make_form(returns), message, emit, voice=voice)
    if not returned.json:
        why = returned.turn.error.rstrip(".") or "There is no answer"
        raise AnswerError(f"{why}. The conversation is stored as session {session.id}.")
    return returned.value
