"""Server-sent events, as far as the providers use them: the data of each event, whatever the chunks."""

from collections.abc import Iterator

from hone.core.errors import Unreachable

_LIMIT = 32 * 1024 * 1024


class Events:
    """Fed with bytes as they come, gives the data of every event that is complete."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > _LIMIT:
            raise Unreachable("The provider sent an endless line.")
        for line in (each.rstrip(b"\r") for each in lines):
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data.clear()

    def end(self) -> Iterator[bytes]:
        """A last event without its blank line, as some servers end."""
        yield from self.feed(b"\n\n")
