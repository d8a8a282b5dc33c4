"""A model that follows a script, for tests, the demo and benchmarks."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from hone.core.errors import SettingsError
from hone.core.messages import (
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    assistant,
    canonical,
    digest,
)
from hone.core.model import Finish, Piece, Reply, TextPiece, ThinkingPiece, Usage
from hone.core.prefix import Prefix
from hone.core.regex import regex
from hone.core.transcript import Transcript
from hone.core.value import replace

Script = Callable[[Sequence[Message]], Message | Reply]
"""Takes all messages of the conversation so far; returns the next reply."""

_WORD = regex(r"\s*\S+\s*|\s+")


def call(name: str, id: str = "", /, **arguments: Any) -> ToolCall:
    """Return a call whose id follows from its content. Repeated in one conversation, it gets a number."""
    text = canonical(arguments)
    return ToolCall(id or _made_id(name, text), name, text)


def lines(*replies: str | Message | Reply) -> Script:
    """Return the n-th reply, where n is the number of replies so far; the last one repeats."""
    return _counted(replies, anew=False)


def rounds(*replies: str | Message | Reply) -> Script:
    """Like `lines`, but start over with each message of the user."""
    return _counted(replies, anew=True)


def rules(*pairs: tuple[str, Script], otherwise: Script) -> Script:
    """Return the reply of the first script whose pattern matches the user's last words."""

    def script(messages: Sequence[Message]) -> Message | Reply:
        words = _asked(messages)
        chosen = next(
            (then for pattern, then in pairs if re.search(pattern, words, re.IGNORECASE)), otherwise
        )
        return chosen(messages)

    return script


def echo(messages: Sequence[Message]) -> Message:
    return assistant(f"A scripted model heard: {_asked(messages)}")


def _counted(replies: Sequence[str | Message | Reply], *, anew: bool) -> Script:
    if not replies:
        raise ValueError("a script needs at least one reply")
    ready = [assistant(reply) if isinstance(reply, str) else reply for reply in replies]

    def script(messages: Sequence[Message]) -> Message | Reply:
        spoken = 0
        for message in messages:
            spoken = 0 if anew and message.role is Role.USER else spoken + (message.role is Role.ASSISTANT)
        return ready[min(spoken, len(ready) - 1)]

    return script


def _asked(messages: Sequence[Message]) -> str:
    return next((message.text for message in reversed(messages) if message.role is Role.USER), "")


def say(script: Script, messages: Sequence[Message]) -> Reply:
    """Return the script's answer as a reply with a finish reason and ids that are new to the conversation."""
    spoken = script(messages)
    if isinstance(spoken, Message):
        spoken = Reply(spoken, Finish.CALLS if spoken.calls else Finish.DONE)
    if not spoken.message.calls:
        return spoken
    taken = {call.id for message in messages if message.role is Role.ASSISTANT for call in message.calls}
    parts: list[Part] = []
    for part in spoken.message.parts:
        parts.append(_numbered(part, taken) if isinstance(part, ToolCall) else part)
        taken.update(made.id for made in parts[-1:] if isinstance(made, ToolCall))
    return replace(spoken, message=Message(spoken.message.role, tuple(parts)))


def _numbered(call: ToolCall, taken: set[str]) -> ToolCall:
    """Number repeated ids. An id that the script's author chose stays, even if it repeats: then that is the
    fault to play."""
    if call.id not in taken or call.id != _made_id(call.name, call.arguments):
        return call
    numbered = (f"{call.id}_{number}" for number in count(2))
    return replace(call, id=next(id for id in numbered if id not in taken))


def _made_id(name: str, arguments: str) -> str:
    return f"call_{digest(f'{name} {arguments}'.encode())[:12]}"


def words(text: str) -> list[str]:
    """Return the text in pieces, as a model streams it."""
    return _WORD.findall(text)


def weigh(message: Message) -> int:
    """Return the tokens of a reply: a quarter of its characters."""
    letters = 0
    for part in message.parts:
        match part:
            case Text(text) | Thinking(text):
                letters += len(text)
            case ToolCall(_, name, arguments):
                letters += len(name) + len(arguments)
    return max(1, letters // 4)


class _Call(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] = {}
    id: str = ""


class _Line(msgspec.Struct, forbid_unknown_fields=True):
    text: str = ""
    thinking: str = ""
    calls: list[_Call] = []
    finish: Finish | None = None

    def reply(self) -> Reply:
        parts: list[Part] = [Thinking(self.thinking)] if self.thinking else []
        parts += [Text(self.text)] if self.text else []
        parts += [call(each.name, each.id, **each.arguments) for each in self.calls]
        finish = self.finish or (Finish.CALLS if self.calls else Finish.DONE)
        return Reply(Message(Role.ASSISTANT, tuple(parts)), finish)


class _Rounds(msgspec.Struct, forbid_unknown_fields=True):
    rounds: list[_Line]


SCRIPTS: Mapping[str, Script] = {"echo": echo, "hello": lines("Hello from a scripted model.")}


def load(name: str) -> Script:
    """Load a script by its name, or from a JSON file: a list of {"text", "calls": [{"name", "arguments"}]},
    or {"rounds": that list} for one that starts over with each message of the user."""
    if name in SCRIPTS:
        return SCRIPTS[name]
    try:
        read = msgspec.json.decode(Path(name).read_bytes(), type=list[_Line] | _Rounds)
        if isinstance(read, _Rounds):
            return rounds(*(line.reply() for line in read.rounds))
        return lines(*(line.reply() for line in read))
    except (OSError, ValueError, msgspec.DecodeError) as error:
        raise SettingsError(f"The script {name} cannot be used: {error}.") from error


class Scripted:
    """A Model without a provider. `calls` records its arguments."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._known: set[str] = set()
        self.calls: list[tuple[Prefix, Transcript]] = []

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        self.calls.append((prefix, transcript))
        reply = say(self._script, tuple(transcript))
        usage = self._count(prefix, transcript, reply.message)
        for part in reply.message.parts:
            for word in words(part.text) if isinstance(part, Text | Thinking) else ():
                await asyncio.sleep(0)
                yield TextPiece(word) if isinstance(part, Text) else ThinkingPiece(word)
        yield reply if reply.usage != Usage() else replace(reply, usage=usage)

    def _count(self, prefix: Prefix, transcript: Transcript, message: Message) -> Usage:
        """Count four bytes per token. The part shared with an earlier call counts as cached."""
        total = len(prefix.encode())
        cached = total if transcript.root in self._known else 0
        for node in transcript.nodes:
            total += len(node.encoded)
            cached = total if node.hash in self._known else cached
        self._known.update((transcript.root, *(node.hash for node in transcript.nodes)))
        return Usage(total // 4, cached // 4, output=weigh(message))
