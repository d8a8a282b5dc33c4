"""Limits on one reply: how long it may take, how long it may pause, and how large it may grow."""

from collections.abc import Mapping

from msgspec import Struct

from hone.core.errors import ModelError, Overlong, Silent

_BLOCK = 256
"""The size that an empty block counts as: about the memory it takes."""
_LINGER, _FAREWELL = 2.0, 64 * 1024
"""Seconds and bytes that a server gets to end a response after its content is complete."""


class ReplyBounds(Struct, frozen=True):
    """Limits in seconds, except for `size`. `settable` tells whether hone.toml can change them."""

    connect: float = 15.0
    first_byte: float = 60.0
    first_content: float = 300.0
    silence: float = 120.0
    """Between two pieces of content. Comments, pings and empty deltas do not count."""
    reply: float = 3_600.0
    size: int = 4_000_000
    """Characters of content."""
    settable: bool = True

    @property
    def wire(self) -> int:
        """Return the most bytes to read for one reply. A word often arrives in an event 60 times as long."""
        return 64 * self.size

    @property
    def event(self) -> int:
        """Return the most bytes to hold until an event, or an unstreamed body, is complete."""
        return 2 * self.size


REMOTE = ReplyBounds()
LOCAL = ReplyBounds(first_byte=600.0, first_content=1_800.0, silence=600.0, reply=14_400.0)
"""For a server on this machine, which may take minutes to read a long prompt."""


class ReplyWatch:
    """Measures one reply against its limits. Only time spent waiting counts, so that a busy reader cannot run
    out of it; a flood that keeps the reader busy meets the limits on size."""

    def __init__(self, bounds: ReplyBounds, name: str) -> None:
        self.bounds = bounds
        self.name = name
        self._waited = self._last = 0.0
        self._heard = False
        self._content = 0
        self._room = bounds.wire
        self._over: float | None = None

    def left(self) -> float:
        """Return the seconds until the next deadline; 0 or less: it is over."""
        return self._next()[0]

    def overdue(self) -> ModelError:
        """Return the error for the next deadline."""
        return _describe(self.name, self._next()[1], self.bounds)

    def wait(self, seconds: float) -> None:
        """Note the time that passed before data arrived."""
        self._waited += seconds

    def send(self) -> None:
        """Note that the request is still being sent: as long as it is, the server is not the slow one."""
        self._last = self._waited

    def read(self, size: int) -> None:
        """Note bytes that arrived. Raises Overlong if there are too many."""
        if not self._heard:
            self._heard, self._last = True, self._waited
        self._room -= size
        if self._room < 0:
            raise _describe(self.name, "wire", self.bounds)

    def progress(self, content: int, blocks: int) -> None:
        """Note the total number of characters of content, and of blocks. Raises Overlong if there are too
        many."""
        if content > self._content:
            self._content, self._last = content, self._waited
        if content + _BLOCK * blocks > self.bounds.size:
            raise _describe(self.name, "size", self.bounds)

    def hold(self, size: int) -> None:
        """Raise Overlong if an event that has not ended holds too many bytes."""
        if size > self.bounds.event:
            raise _describe(self.name, "event", self.bounds)

    @property
    def has_ended(self) -> bool:
        return self._over is not None

    def end(self) -> None:
        """Note that the content is complete. The response may end a little later, so that the connection can
        be used again."""
        if self._over is None:
            self._over, self._room = self._waited + _LINGER, _FAREWELL

    def _next(self) -> tuple[float, str]:
        bounds, waited = self.bounds, self._waited
        if self._over is not None:
            return self._over - waited, "reply"
        if self._content:
            wait, name = bounds.silence, "silence"
        elif self._heard:
            wait, name = bounds.first_content, "first_content"
        else:
            wait, name = bounds.first_byte, "first_byte"
        return min((self._last + wait - waited, name), (bounds.reply - waited, "reply"))


_MET: Mapping[str, tuple[type[ModelError], str, str]] = {
    "first_byte": (Silent, "sent nothing for {0.first_byte:g} seconds", "first_byte"),
    "first_content": (
        Silent,
        "sent no part of an answer within {0.first_content:g} seconds",
        "first_content of [bounds]",
    ),
    "silence": (Silent, "sent no more of its answer for {0.silence:g} seconds", "silence of [bounds]"),
    "reply": (Overlong, "did not finish its answer within {0.reply:g} seconds", "reply of [bounds]"),
    "size": (Overlong, "sent an answer of more than {0.size:,} characters", "size of [bounds]"),
    "wire": (Overlong, "sent more than {0.wire:,} bytes for one answer", "size of [bounds]"),
    "event": (Overlong, "sent a single event of more than {0.event:,} bytes", "size of [bounds]"),
}
"""For each limit: the error, what happened, and the setting that changes the limit."""


def _describe(who: str, bound: str, bounds: ReplyBounds) -> ModelError:
    kind, what, setting = _MET[bound]
    aim = "wait longer" if kind is Silent else "allow it"
    hint = f" To {aim}, raise {setting} in hone.toml." if bounds.settable else ""
    return kind(f"{who} {what.format(bounds)}.{hint}")
