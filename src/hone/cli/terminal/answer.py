"""An answer while it is given: lines that are final, and the lines of the block that is still open."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from hone.cli.terminal.blocks import Block, Blocks
from hone.cli.terminal.markdown import lines

FENCES = ("```", "~~~")


class Answer:
    """Lines come once and in order: `take` those that are final by now, look at the `open` ones, `close`."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._gap = False
        self._given = 0
        """Lines of the open block that were taken already."""
        self._seen: tuple[int, Sequence[Text]] | None = None

    def feed(self, piece: str) -> None:
        self._blocks.feed(piece)
        self._seen = None

    def take(self, width: int, room: int) -> list[Text]:
        """The blocks that are finished, and of a long fence what has no room: its lines do not change."""
        final = self._lay(self._blocks.take(), width)
        if final:
            self._seen = None
        opened = self._blocks.tail()[:1] if len(self.open(width)) > room else []
        if not opened or not opened[0].text.lstrip().startswith(FENCES):
            return final
        drawn = lines(opened[0], width)
        end = max(self._given, len(drawn) - room)
        more, self._given, self._seen = drawn[self._given : end], end, None
        return [*final, *self._apart(more)]

    def open(self, width: int) -> Sequence[Text]:
        if self._seen is None or self._seen[0] != width:
            kept = self._gap, self._given
            self._seen = width, self._lay(self._blocks.tail(), width)
            self._gap, self._given = kept
        return self._seen[1]

    def close(self, width: int) -> list[Text]:
        left = self._lay(self._blocks.close(), width)
        self._gap, self._seen = False, None
        return left

    def _lay(self, blocks: Iterable[Block], width: int) -> list[Text]:
        laid: list[Text] = []
        for block in blocks:
            laid += self._apart(lines(block, width)[self._given :])
            self._gap, self._given = block.gap, 0
        return laid

    def _apart(self, drawn: Sequence[Text]) -> Sequence[Text]:
        """With an empty line before it, if the last block ended in one."""
        if not drawn or not self._gap:
            return drawn
        self._gap = False
        return [Text(), *drawn]
