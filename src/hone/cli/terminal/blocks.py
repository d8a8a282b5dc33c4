"""Split streamed Markdown into blocks that later input cannot change. It knows nothing of the screen."""

from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec import Struct

from hone.core.visible import visible
from hone.markdown import grammar


class MarkdownBlock(Struct, frozen=True):
    """A paragraph, a heading, a table, a whole fence, or one list item with its content. `number` is an
    item's place in an ordered list."""

    text: str
    number: int | None = None

    @property
    def gap(self) -> bool:
        """Whether an empty line follows."""
        return self.text.endswith("\n\n") or not self.text.strip()


class Blocks:
    """Splits a text into blocks. However the text arrives, the blocks are the same, and joined they are the
    text, made visible.

    A line can only change the block that is open when it arrives, so all but the last one are finished.
    """

    def __init__(self) -> None:
        self._begun = ""
        self._lines = ""
        self._number: int | None = None
        self._changed = False

    def feed(self, piece: str) -> None:
        whole, ending, rest = piece.rpartition("\n")
        if ending:
            self._lines += visible(self._begun + whole + ending)
            self._begun, self._changed = rest, True
        else:
            self._begun += piece

    def tail(self) -> list[MarkdownBlock]:
        """What may still change, as far as it is known."""
        return cut(self._lines + visible(self._begun.removesuffix("\r")), self._number)

    def take(self) -> list[MarkdownBlock]:
        """Return the blocks that have been finished since the last call."""
        if not self._changed:
            return []
        self._changed = False
        *finished, last = cut(self._lines, self._number)
        self._lines, self._number = last.text, last.number
        return finished

    def close(self) -> list[MarkdownBlock]:
        """Return what is left."""
        rest, number = self._lines + visible(self._begun), self._number
        self._lines, self._begun, self._number, self._changed = "", "", None, False
        return cut(rest, number)


def cut(text: str, number: int | None = None) -> list[MarkdownBlock]:
    """Return all blocks of a text; `number` is that of its first item, if it begins within a list. Empty
    lines belong to the block before them."""
    lines = text.splitlines(keepends=True)
    starts = _starts(text, number)
    if not starts:
        return [MarkdownBlock(text)] if text else []
    edges = [0, *(line for line, _ in starts[1:]), len(lines)]
    pieces = ("".join(lines[begin:end]) for begin, end in pairwise(edges))
    return [MarkdownBlock(piece, each) for piece, (_, each) in zip(pieces, starts, strict=True)]


def _starts(text: str, number: int | None) -> list[tuple[int, int | None]]:
    """Return the first line of each block and, for items of an ordered list, their number."""
    found: list[tuple[int, int | None]] = []
    following = number
    for token in _cutter().parse(text):
        if token.map is None or token.nesting < 0:
            continue
        if token.level == 0 and token.type.endswith("list_open"):
            following = _first_number(token) if number is None or found else number
        elif token.level == 0:
            found.append((token.map[0], None))
        elif token.level == 1 and token.type == "list_item_open":
            found.append((token.map[0], following))
            following = None if following is None else following + 1
    return found


def _first_number(opening: Token) -> int | None:
    return int(opening.attrs.get("start", 1)) if opening.type == "ordered_list_open" else None


@cache
def _cutter() -> MarkdownIt:
    """Return the same grammar, for blocks only."""
    parser = grammar()
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser
