"""Make imported messages valid for every provider.

Each call is followed by its result, secrets are removed, and invisible characters are made visible.
"""

import json
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from datetime import datetime

from hone.core.messages import Message, Part, Role, Text, Thinking, ToolCall, ToolResult, canonical, sound
from hone.core.messages import user as said
from hone.core.normalize import normalize
from hone.core.secrets import redact
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import visible
from hone.features.imports.conversation import ImportReport, RawMessage, result
from hone.runtime.export import clean_within, cleaned

LONGEST = 50_000
"""The most characters of a tool's result."""
UNANSWERED = "calls without a result, which got one that says so"
UNASKED = "results without a call"
THOUGHTS = "thoughts that nothing was said after"
CUT = "ends of long results"
LOST = "(The beginning of this conversation is not there.)"


def paired(messages: Iterable[RawMessage], report: ImportReport) -> list[RawMessage]:
    """Pair calls with results. What is open at the very end stays open: the rest may come with the next
    import."""
    given = list(messages)
    pairs = _Pairs(report, Counter(raw.message.result.call for raw in given if raw.message.result))
    for raw in given:
        pairs.feed(raw)
    return pairs.ended()


class _Pairs:
    """`open` has the calls that wait for a result: by their ids here, their ids at the source. While one of
    them is missing, everything else is `held` back."""

    def __init__(self, report: ImportReport, coming: Counter[str]) -> None:
        self._account = report
        self._coming = coming
        self._placed: list[RawMessage] = []
        self._open: dict[str, str] = {}
        self._held: deque[RawMessage] = deque()
        self._due: deque[RawMessage] = deque()
        self._ids: set[str] = set()

    def feed(self, raw: RawMessage) -> None:
        self._due.append(raw)
        while self._due:
            self._take(self._due.popleft())
            if self._held and not self._open:
                self._due.extendleft(reversed(self._held))
                self._held.clear()

    def ended(self) -> list[RawMessage]:
        while self._held:
            self._close(self._open)
            again, self._held = self._held, deque()
            for raw in again:
                self.feed(raw)
        kept = [raw for raw in self._placed if not _is_mute(raw.message)]
        self._account.left[THOUGHTS] += len(self._placed) - len(kept)
        if kept and kept[0].message.role is Role.ASSISTANT:
            kept.insert(0, RawMessage(said(LOST), Trust.AGENT, kept[0].at))
        return kept

    def _take(self, raw: RawMessage) -> None:
        answered = raw.message.result
        if answered is None:
            self._hear(raw)
        elif call := next((id for id, theirs in self._open.items() if theirs == answered.call), ""):
            self._coming[answered.call] -= 1
            self._answer(call, answered, raw.at)
        elif self._held:
            self._held.append(raw)  # its call may be held, too
        else:
            self._coming[answered.call] -= 1
            self._account.left[UNASKED] += 1

    def _hear(self, raw: RawMessage) -> None:
        same = self._open and raw.message.role is Role.ASSISTANT is self._placed[-1].message.role
        if self._open and not (same and not self._held):
            self._close([call for call, theirs in self._open.items() if self._coming[theirs] <= 0])
        if self._open and (self._held or not same):
            self._held.append(raw)
        elif raw.message.role is Role.USER:
            words = _plain(raw.message.text)
            if words.strip():
                self._placed.append(replace(raw, message=said(words)))
        else:
            self._reply(raw)

    def _close(self, calls: Iterable[str]) -> None:
        for call in tuple(calls):
            self._account.left[UNANSWERED] += 1
            closing = ToolResult(call, "not run to its end: there is no result", failed=True)
            self._answer(call, closing, self._placed[-1].at)

    def _answer(self, call: str, answered: ToolResult, at: datetime | None) -> None:
        text = _clean(answered.text[:LONGEST])
        if len(answered.text) > LONGEST:
            self._account.left[CUT] += 1
            text += f"\n[… {len(answered.text) - LONGEST:,} more characters were not brought in]"
        del self._open[call]
        self._placed.append(result(call, text, at, failed=answered.failed))

    def _reply(self, raw: RawMessage) -> None:
        parts = self._settled([part for each in raw.message.parts if (part := _fit(each))])
        if not parts:
            return
        before = self._placed[-1] if self._placed else None
        if before and before.message.role is Role.ASSISTANT:
            message = Message(Role.ASSISTANT, _joined(before.message.parts, parts))
            self._placed[-1] = replace(before, message=message, trust=min(before.trust, raw.trust))
        else:
            self._placed.append(replace(raw, message=Message(Role.ASSISTANT, parts)))

    def _settled(self, parts: Sequence[Part]) -> tuple[Part, ...]:
        """Return a reply's parts with valid calls. These are open from here on."""
        if not any(isinstance(part, ToolCall) for part in parts):
            return tuple(parts)
        number, reply = len(self._placed), Message(Role.ASSISTANT, tuple(parts))
        settled = normalize(reply, self._near(reply, number), number).message
        if any(call.id in self._ids for call in settled.calls):
            settled = normalize(reply, self._ids, number).message
        for theirs, call in zip(reply.calls, settled.calls, strict=True):
            self._open[call.id] = theirs.id
            self._ids.add(call.id)
        return settled.parts

    def _near(self, reply: Message, number: int) -> set[str]:
        """Return the ids that could collide, out of possibly very many."""
        wanted = {call.id for call in reply.calls}
        return (wanted | {f"call_{number}_{index}" for index in range(len(reply.parts))}) & self._ids


def _is_mute(message: Message) -> bool:
    """Tell whether a thought has nothing after it: no provider accepts it as a reply."""
    return message.role is Role.ASSISTANT and not message.text and not message.calls


def _joined(before: Sequence[Part], after: Sequence[Part]) -> tuple[Part, ...]:
    """Join two texts of one reply with a separator."""
    apart = any(isinstance(part, Text) for part in before)
    return (
        *before,
        *(Text(f"\n\n{part.text}") if apart and isinstance(part, Text) else part for part in after),
    )


def _clean(text: str) -> str:
    """Clean a text as a tool's result or a reply would be here."""
    return redact(_plain(text))


def _plain(text: str) -> str:
    return visible(sound(text))


def _fit(part: Part) -> Part | None:
    match part:
        case Text(text) if text.strip():
            return Text(_clean(text))
        case Thinking(text) if text.strip():
            return Thinking(_clean(text))
        case ToolCall(id, name, arguments):
            return ToolCall(id, name, _arguments(arguments))
    return None


def _arguments(text: str) -> str:
    try:
        value = json.loads(text) if text.strip() else {}
        return cleaned(canonical(clean_within(value, _plain)), redact)
    except (ValueError, RecursionError):
        return _clean(text)
