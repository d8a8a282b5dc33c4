"""I3: an answer on the page has the structure that the terminal and the library's HTML renderer give it."""

from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from hone.cli.terminal.blocks import cut
from hone.cli.terminal.markdown import lines
from hone.web.markdown import TAGS, MarkdownNode, read
from tests.web.rig import running

DOCUMENTS = (
    "Plain words.",
    "Two\nlines.",
    "Two paragraphs.\n\nThe second.",
    "A hard break  \nfollows here, and a second\\\nby a backslash.",
    "# One\n\n## Two\n\n### Three\n\n#### Four\n\n##### Five\n\n###### Six",
    "Title\n=====\n\nLesser\n------\n\nText.",
    "*soft* _soft_ **strong** __strong__ ***both*** ~~gone~~",
    "snake_case_name and 2*3*4 and a * b",
    "`code` and `` a ` b `` and `<b>`",
    "- one\n- two\n- three",
    "* one\n\n* two\n\n* three",
    "+ one\n  more of one\n+ two",
    "1. first\n2. second\n3. third",
    "7) seventh\n8) eighth",
    "- outer\n  - inner\n    - innermost\n- next",
    "1. step\n   - detail\n   - another\n2. step\n\n   A paragraph of it.",
    "- [ ] open\n- [x] done",
    "- item\n\n  ```python\n  def f(): return 1\n  ```\n- next",
    "> quoted\n> more",
    "> outer\n>\n> > inner\n>\n> outer again",
    "> - a list\n> - in a quote\n>\n> ```\n> and code\n> ```",
    "```python\nimport os\n\nprint(os.sep)\n```",
    "```\nno language\n```",
    "~~~sh\nls -l | wc\n~~~",
    "````md\n```\ninner\n```\n````",
    "```unknown-language\nx = 1\n```",
    '```json\n{"a": [1, 2, null]}\n```',
    "    indented code\n      deeper\n\nText.",
    "```diff\n-old\n+new\n```",
    "| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |",
    "| left | middle | right |\n|:--|:-:|--:|\n| *x* | `y` | [z](https://example.org) |",
    "Text before\n\n| only |\n|------|\n\nText after",
    "| cell with \\| bar | b |\n|---|---|\n| 1 | 2 |",
    '[words](https://example.org/a?b=c&d=e "a title") and <https://example.org>',
    "[**strong** words](https://example.org) and [empty]()",
    "![a picture](https://example.org/x.png) and ![no place]()",
    "[never](javascript:alert(1)) and ![never](javascript:alert(1))",
    "above\n\n---\n\nbelow\n\n***",
    "<script>alert(1)</script>\n\n<div>\n\n**x**\n\n</div> &lt;b&gt; &amp; &quot;",
    "\\*not soft\\* \\# not a title \\`not code\\`",
    "1. one\n\n   > quoted in a list\n\n   | a | b |\n   |---|---|\n   | 1 | 2 |\n\n2. two",
    "An unfinished ```python\nfence and **emphasis",
    "```python\nnever closed",
    "[ref]: https://example.org\n\nSee [ref].",
)


RENDERER = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"]).disable("reference")
"""Set up apart from the grammar of Hone."""
RULE = "─"
HR = RULE * 40
INLINE = frozenset(("a", "img", "em", "strong", "s", "code", "br"))


class Reference(HTMLParser):
    """The HTML of the library as nested tuples: tag, attributes, children."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[list[Any]] = [[]]
        self.open: list[tuple[str, dict[str, Any]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = {name: value or "" for name, value in attrs}
        if tag in ("hr", "br"):
            self.stack[-1].append((tag, {}, []))
        elif tag == "img":
            alt = held.get("alt", "")
            self.stack[-1].append(("img", _leads(held, "src"), [alt] if alt else []))
        elif not (tag == "code" and self.open and self.open[-1][0] == "pre"):
            self.open.append((tag, held))
            self.stack.append([])
        elif "class" in held:
            self.open[-1][1]["info"] = held["class"].removeprefix("language-")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag == "code" and self.open[-1][0] == "pre":
            return
        name, held = self.open.pop()
        children = _tidy(self.stack.pop(), name)
        self.stack[-1].append((name, _attributes(name, held), children))

    def handle_data(self, data: str) -> None:
        self.stack[-1].append(data)


def _leads(held: dict[str, Any], name: str) -> dict[str, Any]:
    found = {"to": held.get(name, ""), "title": held.get("title", "")}
    return {name: value for name, value in found.items() if value}


def _attributes(tag: str, held: dict[str, Any]) -> dict[str, Any]:
    if tag == "a":
        return _leads(held, "href")
    side = held.get("style", "").removeprefix("text-align:")
    found = {"start": held.get("start"), "align": side, "info": held.get("info")}
    return {name: str(value) for name, value in found.items() if value}


def _tidy(children: list[Any], tag: str) -> list[Any]:
    """Without the line feeds that only set the HTML apart."""
    if tag == "pre":
        text = "".join(children).removesuffix("\n")
        return [text] if text else []
    made = [_trimmed(children, at) for at in range(len(children))]
    return [each for each in made if each != ""]


def _trimmed(children: list[Any], at: int) -> Any:
    each = children[at]
    if not isinstance(each, str):
        return each
    before = children[at - 1] if at else None
    after = children[at + 1] if at + 1 < len(children) else None
    begins = not at or _is_block(before) or before == ("br", {}, [])
    text = each.removeprefix("\n") if begins else each
    return text.removesuffix("\n") if after is None or _is_block(after) else text


def _is_block(node: Any) -> bool:
    return isinstance(node, tuple) and node[0] not in INLINE


def understood(text: str) -> list[Any]:
    parser = Reference()
    parser.feed(RENDERER.render(text))
    parser.close()
    return _tidy(parser.stack[0], "")


def plain(node: MarkdownNode) -> Any:
    """One of our nodes in the same form, without colors."""
    if isinstance(node, str):
        return node
    held = {name: str(value) for name, value in node.items() if name not in ("tag", "children")}
    if node["tag"] == "pre":
        text = "".join(_words(each) for each in node["children"])
        return ("pre", held, [text] if text else [])
    return (node["tag"], held, [plain(each) for each in node["children"]])


def _words(node: MarkdownNode) -> str:
    return node if isinstance(node, str) else "".join(map(_words, node["children"]))


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_has_the_structure_that_the_reference_renderer_gives_it(text: str) -> None:
    assert [plain(each) for each in read(text).nodes] == understood(text)


def on_terminal(text: str) -> list[str]:
    """The lines that the terminal shows, one space for several."""
    drawn = (line.plain for block in cut(text) for line in lines(block, 200))
    tidy = (" ".join(line.split()) for line in drawn)
    return [line for line in tidy if set(line) - set(RULE + " │•") or line == HR]


def on_page(nodes: Sequence[MarkdownNode], mark: str = "") -> list[str]:
    """The lines that a terminal would show of the page's nodes."""
    found: list[str] = []
    words = ""
    for node in nodes:
        if isinstance(node, str) or node["tag"] in INLINE:
            words += _inline(node)
            continue
        found, words = [*found, *_split(words)], ""
        found += _block(node)
    found += _split(words)
    return [f"{mark} {line}" if mark == "│" or (mark and not at) else line for at, line in enumerate(found)]


def _block(node: dict[str, Any]) -> list[str]:
    inner = node["children"]
    match node["tag"]:
        case "ul":
            return [line for item in inner for line in on_page(item["children"], "•")]
        case "ol":
            first = int(node.get("start", 1))
            numbered = enumerate(inner, first)
            return [line for number, item in numbered for line in on_page(item["children"], f"{number}.")]
        case "blockquote":
            return on_page(inner, "│")
        case "pre":
            return _split("".join(map(_words, inner)))
        case "table":
            return [line for part in inner for row in part["children"] for line in _split(_row(row))]
        case "hr":
            return [HR]
    return _split("".join(map(_inline, inner)))


def _row(row: dict[str, Any]) -> str:
    return " ".join("".join(map(_inline, cell["children"])) for cell in row["children"])


def _split(text: str) -> list[str]:
    return [tidy for line in text.split("\n") if (tidy := " ".join(line.split()))]


def _inline(node: MarkdownNode) -> str:
    if isinstance(node, str):
        return node
    said, to = "".join(map(_inline, node["children"])), node.get("to", "")
    title = f": {node['title']}" if "title" in node else ""
    match node["tag"]:
        case "br":
            return "\n"
        case "a":
            return said if to == said else f"{said} ({to}{title})"
        case "img":
            return f"[{said}] ({to})"
    return said


@pytest.mark.parametrize("text", DOCUMENTS)
def test_the_terminal_shows_a_document_with_the_same_structure(text: str) -> None:
    assert on_page(read(text).nodes) == on_terminal(text)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_lines_that_are_settled_stay_as_they_are_whatever_follows(text: str) -> None:
    whole = read(text)
    lines = text.split("\n")
    settled = whole.nodes[: len(read("\n".join(lines[: whole.settled])).nodes)]
    rest = read("\n".join(lines[whole.settled :])).nodes
    assert [*settled, *rest] == list(whole.nodes)


def test_every_tag_is_one_that_the_page_knows() -> None:
    script = (Path(__file__).parents[2] / "src/hone/web/static/markdown.js").read_text()
    used = {tag for text in DOCUMENTS for node in read(text).nodes for tag in _tags(node)}
    assert used <= TAGS
    for tag in TAGS:
        assert f'"{tag}"' in script or f" {tag} " in script, tag


def _tags(node: MarkdownNode) -> set[str]:
    if isinstance(node, str):
        return set()
    return {node["tag"]} | {tag for child in node["children"] for tag in _tags(child)}


async def test_the_page_gets_documents_and_not_markup(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        answer = await visit.post("/api/markdown", texts=["**x**", "<b>y</b>", "z" * 300_000])
        [strong, markup, long] = [each["nodes"] for each in answer["documents"]]
        assert strong == [{"tag": "p", "children": [{"tag": "strong", "children": ["x"]}]}]
        assert markup == [{"tag": "p", "children": ["<b>y</b>"]}]
        assert long == [{"tag": "pre", "children": ["z" * 300_000]}]
        many = await visit.client.post("/api/markdown", json={"texts": ["x"] * 201})
        assert many.status_code == 400
