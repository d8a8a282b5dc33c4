"""Turn Markdown into a tree of plain values that the page turns into elements, one by one.

A node is a text or an object with a tag from TAGS. No attribute of a node is ever loaded or run: a link or an
image only says where it leads.
"""

from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any

import msgspec
from markdown_it.tree import SyntaxTreeNode
from msgspec import Struct
from pygments.token import Comment, Generic, Keyword, Name, Number, Operator, String, Token, _TokenType

from hone.core.visible import visible
from hone.markdown import color, grammar

TAGS = frozenset(
    [
        *("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr", "br"),
        *("table", "thead", "tbody", "tr", "th", "td", "em", "strong", "s", "code", "a", "img", "span"),
    ]
)
LONGEST = 200_000
"""A text with more characters stays plain."""
KEPT = 512
"""How many documents to cache: a conversation is read again and again."""

KINDS: dict[_TokenType, str] = {
    Token: "",
    Comment: "comment",
    Keyword: "keyword",
    Operator.Word: "keyword",
    Name.Function: "name",
    Name.Class: "name",
    Name.Tag: "name",
    Name.Decorator: "name",
    String: "string",
    Number: "number",
    Generic.Inserted: "came",
    Generic.Deleted: "went",
    Generic.Heading: "heading",
    Generic.Subheading: "heading",
}
"""The kinds of code with a color."""

MarkdownNode = str | dict[str, Any]


class MarkdownDocument(Struct, frozen=True):
    """`settled` is the number of lines before the last block: text that follows cannot change them."""

    nodes: Sequence[MarkdownNode]
    settled: int = 0


def read(text: str) -> MarkdownDocument:
    if len(text) > LONGEST:
        return MarkdownDocument([_element("pre", [visible(text)])])
    tree = SyntaxTreeNode(_parser().parse(visible(text)))
    last = tree.children[-1].map if len(tree.children) > 1 else None
    return MarkdownDocument(_nodes(tree.children), last[0] if last else 0)


@lru_cache(KEPT)
def encoded(text: str) -> msgspec.Raw:
    """Return the document of a text as JSON."""
    return msgspec.Raw(msgspec.json.encode(read(text)))


_parser = cache(grammar)


def _element(tag: str, children: Iterable[MarkdownNode] = (), **more: Any) -> dict[str, Any]:
    held = {name: value for name, value in more.items() if value not in ("", None)}
    return {"tag": tag, **held, "children": _joined(children)}


def _joined(nodes: Iterable[MarkdownNode]) -> list[MarkdownNode]:
    """Merge neighboring texts."""
    made: list[MarkdownNode] = []
    for node in nodes:
        if isinstance(node, str) and made and isinstance(made[-1], str):
            made[-1] += node
        elif node != "":
            made.append(node)
    return made


def _nodes(nodes: Iterable[SyntaxTreeNode]) -> list[MarkdownNode]:
    return _joined(made for node in nodes for made in _node(node))


def _node(node: SyntaxTreeNode) -> Sequence[MarkdownNode]:
    match node.type:
        case "inline":
            return _nodes(node.children)
        case "paragraph" if node.hidden:  # an item of a list without empty lines
            return _nodes(node.children)
        case "softbreak":
            return ["\n"]
        case "fence" | "code_block":
            return [_code(node)]
        case "code_inline":
            return [_element("code", [visible(node.content)])]
        case "link":
            return [_element("a", _nodes(node.children), **_leads(node, "href"))]
        case "image":
            return [_element("img", [visible(node.content)], **_leads(node, "src"))]
        case "ordered_list":
            return [_element("ol", _nodes(node.children), start=node.attrs.get("start"))]
        case "th" | "td":
            side = str(node.attrs.get("style", "")).removeprefix("text-align:")
            return [_element(node.type, _nodes(node.children), align=side)]
    if node.tag in TAGS:
        return [_element(node.tag, _nodes(node.children))]
    return [visible(node.content)]


def _leads(node: SyntaxTreeNode, name: str) -> dict[str, str]:
    return {"to": visible(str(node.attrs.get(name, ""))), "title": visible(str(node.attrs.get("title", "")))}


def _code(node: SyntaxTreeNode) -> dict[str, Any]:
    info = visible(node.info).strip() if node.type == "fence" else ""
    language = info.partition(" ")[0].lower()
    pieces = color(visible(node.content.removesuffix("\n")), language)
    kinds = ((_kind(kind), piece) for kind, piece in pieces)
    children = (_element("span", [piece], kind=kind) if kind else piece for kind, piece in kinds)
    return _element("pre", children, info=info)


@cache
def _kind(kind: _TokenType) -> str:
    while kind not in KINDS:
        kind = kind.parent or Token
    return KINDS[kind]
