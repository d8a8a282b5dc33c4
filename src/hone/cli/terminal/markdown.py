"""Render one Markdown block as styled lines. Code lines are not wrapped, so copied code is intact."""

from collections.abc import Iterator, Sequence
from functools import cache

from markdown_it.tree import SyntaxTreeNode
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Token, _TokenType
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from hone.cli.terminal.blocks import MarkdownBlock
from hone.core.visible import visible
from hone.markdown import color, grammar

NARROWEST = 10
PROSE = 100
"""Prose is not wider than this, however wide the terminal."""

PLAIN = Style()
DIM, BOLD, CODE = Style(dim=True), Style(bold=True), Style(color="cyan")
TITLE = Style(bold=True, underline=True)
EMPHASES = {"strong": BOLD, "em": Style(italic=True), "s": Style(strike=True)}

STYLES: dict[_TokenType, Style] = {
    Token: Style(),
    Comment: Style(dim=True, italic=True),
    Keyword: Style(color="magenta"),
    Name.Function: Style(color="blue"),
    Name.Class: Style(color="blue"),
    Name.Tag: Style(color="blue"),
    Name.Decorator: Style(color="blue"),
    String: Style(color="green"),
    Number: Style(color="cyan"),
    Operator.Word: Style(color="magenta"),
    Generic.Inserted: Style(color="green"),
    Generic.Deleted: Style(color="red"),
    Generic.Heading: Style(bold=True),
    Generic.Subheading: Style(color="cyan"),
}


def lines(block: MarkdownBlock, width: int) -> list[Text]:
    """Return the lines of a block, without the empty line that may follow it."""
    tree = SyntaxTreeNode(_parser().parse(block.text))
    return list(Page(block.text.split("\n"), block.number).stack(tree.children, max(width, NARROWEST)))


_parser = cache(grammar)


class Page:
    """Draws the nodes of one block. `number` is that of the item, if the block is one."""

    def __init__(self, source: Sequence[str], number: int | None) -> None:
        self._source = source
        self._number = number

    def stack(self, nodes: Sequence[SyntaxTreeNode], width: int) -> Iterator[Text]:
        """Stack nodes, with an empty line where the source has one."""
        for at, node in enumerate(nodes):
            if at and node.map and not self._source[node.map[0] - 1].strip(" \t>"):
                yield Text()
            yield from self._draw(node, width)

    def _draw(self, node: SyntaxTreeNode, width: int) -> Iterator[Text]:
        match node.type:
            case "paragraph" | "heading":
                yield from set_text(words(node, _face(node)), width)
            case "bullet_list" | "ordered_list":
                yield from self._items(node, width)
            case "blockquote":
                yield from indented(self.stack(node.children, _less(width, 2)), "│ ", "│ ")
            case "fence" | "code_block":
                yield from code(node)
            case "table":
                yield from table(node, width)
            case "hr":
                yield Text("─" * min(width, 40), DIM)
            case _:
                yield from set_text(Text(visible(node.content)), width)

    def _items(self, node: SyntaxTreeNode, width: int) -> Iterator[Text]:
        top = node.level == 0 and self._number is not None
        first = self._number if top else node.attrs.get("start", 1)
        for at, item in enumerate(node.children):
            mark = "• " if node.type == "bullet_list" else f"{int(first or 0) + at}. "
            if at and item.map and not self._source[item.map[0] - 1].strip(" \t>"):
                yield Text()
            drawn = self.stack(item.children, _less(width, len(mark)))
            yield from indented(drawn, mark, " " * len(mark))


def _less(width: int, cells: int) -> int:
    return max(NARROWEST, width - cells)


def _face(node: SyntaxTreeNode) -> Style:
    return PLAIN if node.type == "paragraph" else TITLE if node.tag == "h1" else BOLD


def indented(drawn: Iterator[Text], first: str, further: str) -> Iterator[Text]:
    """Indent lines. An empty item still shows its mark."""
    mark = first
    for line in (next(drawn, Text()), *drawn):
        marked = Text.assemble((mark, DIM), line)
        marked.rstrip()
        yield marked
        mark = further


def set_text(text: Text, width: int) -> Iterator[Text]:
    for line in text.wrap(_console(), min(width, PROSE), overflow="fold"):
        line.rstrip()
        yield line


def words(node: SyntaxTreeNode, style: Style = PLAIN) -> Text:
    """Return the painted text inside a block. Entities can encode anything, so it is made visible once
    more."""
    text = Text()
    for child in node.children:
        if child.type in ("softbreak", "hardbreak"):
            text.append("\n")
        elif child.type == "link":
            text.append_text(_link(child, style))
        elif child.type == "image":
            place = visible(str(child.attrs.get("src", "")))
            text.append(f"[{visible(child.content)}] ({place})", style)
        elif child.type == "code_inline":
            text.append(visible(child.content), style + CODE)
        elif child.children:
            text.append_text(words(child, style + EMPHASES.get(child.type, PLAIN)))
        else:
            text.append(visible(child.content), style)
    return text


def _link(node: SyntaxTreeNode, style: Style) -> Text:
    """Return a link's words and its target, both readable."""
    said, place = words(node, style), visible(str(node.attrs.get("href", "")))
    title = visible(str(node.attrs.get("title", "")))
    if place not in (said.plain, f"mailto:{said.plain}"):
        said.append(f" ({place}{f': {title}' if title else ''})", style + DIM)
    return said


def code(node: SyntaxTreeNode) -> Iterator[Text]:
    """Yield code as written, without a frame, and wider than the screen if necessary."""
    info = visible(node.info).strip() if node.type == "fence" else ""
    language = info.partition(" ")[0].lower()
    if info.lower() != language or set(":/.") & set(language):
        yield Text(info, DIM)
    yield from coloured(visible(node.content.removesuffix("\n")), language)


def table(node: SyntaxTreeNode, width: int) -> Iterator[Text]:
    drawn = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, border_style=DIM)
    rows = [row for part in node.children for row in part.children]
    for cell in rows[0].children:
        side = str(cell.attrs.get("style", "")).removeprefix("text-align:")
        drawn.add_column(words(cell, BOLD), justify="right" if side == "right" else "left", overflow="fold")
    for row in rows[1:]:
        drawn.add_row(*(words(cell) for cell in row.children))
    console = _console()
    for segments in console.render_lines(drawn, console.options.update(width=width), pad=False):
        line = Text.assemble(*((each.text, each.style or PLAIN) for each in segments))
        line.rstrip()
        yield line


@cache
def _console() -> Console:
    """Return a console that measures and wraps; nothing is ever printed on it."""
    return Console(color_system=None, force_terminal=False, legacy_windows=False, _environ={})


def coloured(code: str, language: str) -> list[Text]:
    """Color code in the terminal's palette, line by line."""
    lines = [Text()]
    for kind, piece in color(code, language):
        first, *more = piece.split("\n")
        lines[-1].append(first, _style(kind))
        lines += [Text.assemble((line, _style(kind))) for line in more]
    return lines


@cache
def _style(kind: _TokenType) -> Style:
    while kind not in STYLES:
        kind = kind.parent or Token
    return STYLES[kind]
