"""An answer while it is given: lines that are final, and the lines of the block that is still open."""

from collections.abc import Iterable, Sequence

from rich.text import Text

from hone.cli.terminal.blocks import Blocks, MarkdownBlock
from hone.cli.terminal.markdown import lines

FENCES = ("```", "~~~")


class AnswerLines:
    """Lines come once and in order: `take` those that are final by now, look at the `open` ones, `close`."""

    def __init__(self) -> None:
        self._blocks = Blocks()
        self._gap = False
        self._given = 0
        """Lines of the open block that were taken already."""
        self._seen: tuple[int, list[tuple[MarkdownBlock, Sequence[Text]]]] | None = None

    def feed(self, piece: str) -> None:
        self._blocks.feed(piece)
        self._seen = None

    def take(self, width: int, room: int) -> list[Text]:
        """The blocks that are finished, and of a long fence what has no room: its lines do not change."""
        final = self._lay(_drawn(self._blocks.take(), width))
        if final:
            self._seen = None
        for block, drawn in self._tail(width)[:1]:
            end = len(drawn) - room
            if end > self._given and block.text.lstrip().startswith(FENCES):
                final += self._apart(drawn[self._given : end])
                self._given = end
        return final

    def open(self, width: int) -> list[Text]:
        kept = self._gap, self._given
        laid = self._lay(self._tail(width))
        self._gap, self._given = kept
        return laid

    def close(self, width: int) -> list[Text]:
        left = self._lay(_drawn(self._blocks.close(), width))
        self._gap, self._seen = False, None
        return left

    def _tail(self, width: int) -> list[tuple[MarkdownBlock, Sequence[Text]]]:
        """Drawn again only when something was said since."""
        if self._seen is None or self._seen[0] != width:
            self._seen = width, _drawn(self._blocks.tail(), width)
        return self._seen[1]

    def _lay(self, drawn: Iterable[tuple[MarkdownBlock, Sequence[Text]]]) -> list[Text]:
        laid: list[Text] = []
        for block, block_lines in drawn:
            laid += self._apart(block_lines[self._given :])
            self._gap, self._given = block.gap, 0
        return laid

    def _apart(self, some: Sequence[Text]) -> Sequence[Text]:
        """With an empty line before them, if the last block ended in one."""
        if not some or not self._gap:
            return some
        self._gap = False
        return [Text(), *some]


def _drawn(blocks: Iterable[MarkdownBlock], width: int) -> list[tuple[MarkdownBlock, Sequence[Text]]]:
    return [(block, lines(block, width)) for block in blocks]
