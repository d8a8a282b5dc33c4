"""Convert a web page to text for a model: headings, paragraphs, lists, rough tables, code, numbered links.

Navigation is left out, and so is anything invisible: scripts, styles and hidden elements.
"""

import re
from collections import Counter
from dataclasses import dataclass
from urllib.parse import urldefrag, urljoin, urlsplit

from hone.core.regex import regex
from hone.tools.web.layout import Layout, Readable
from hone.tools.web.markup import End, Start, tokens

_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_LISTS = frozenset({"menu", "ol", "ul"})
_PARAGRAPHS = frozenset(
    {"address", "article", "aside", "blockquote", "body", "center", "details", "dialog", "dl", "fieldset"}
    | {"figure", "footer", "form", "header", "main", "p", "pre", "section", "table"}
    | _HEADINGS.keys()
    | _LISTS
)
_LINES = frozenset(
    {"caption", "dd", "div", "dt", "figcaption", "legend", "li", "summary", "tbody", "tfoot", "thead", "tr"}
)
_CODE = frozenset({"code", "kbd", "samp", "tt"})
_CELLS = frozenset({"td", "th"})
_DROPPED = frozenset(
    {"audio", "button", "canvas", "datalist", "iframe", "math", "nav", "noembed", "noframes", "noscript"}
    | {"object", "script", "select", "style", "svg", "template", "textarea", "video"}
)
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
_UNSEEN = regex(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_CONTROLS = regex(r"[\x00-\x08\x0b\x0e-\x1f\x7f]")

Names = frozenset[str]
# The elements that a new element closes if their end tag is missing, and those it never closes.
_ENDS: dict[str, tuple[Names, Names]] = {
    "li": (frozenset({"li"}), _LISTS),
    "dt": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "dd": (frozenset({"dt", "dd"}), frozenset({"dl"})),
    "tr": (frozenset({"tr"}), frozenset({"table"})),
    "td": (_CELLS, frozenset({"tr", "table"})),
    "th": (_CELLS, frozenset({"tr", "table"})),
}
_ENDS_PARAGRAPH = (frozenset({"p"}), frozenset({"button", "caption", "object", "table", "td", "th"}))
# No page made for people comes near these limits, and without them a hostile one would cost too much.
_NEAR = 32
_DEPTH = 8
_URL_LIMIT = 1_000


def readable(html: str, url: str) -> Readable:
    reader = _Reader(url)
    for token in tokens(_CONTROLS.sub("", html)):
        if isinstance(token, Start):
            reader.start(token)
        elif isinstance(token, End):
            reader.end(token.name)
        else:
            reader.say(token)
    return reader.finish()


@dataclass(slots=True)
class _Element:
    name: str
    dropped: bool
    link: int = 0
    begun: int = 0
    """How long the text was then."""
    children: int = 0
    """The items of a list or the cells of a row."""


class _Reader:
    def __init__(self, url: str) -> None:
        self._page, self._base = urldefrag(url)[0], url
        self._layout = Layout()
        self._stack = [_Element("", dropped=False)]
        self._open: Counter[str] = Counter()
        self._code: list[str] | None = None
        self._title = ""
        self._links: dict[str, int] = {}
        self._marks: list[tuple[int, int]] = []

    def start(self, tag: Start) -> None:
        name = tag.name
        if name in _VOID:
            self._void(tag)
            return
        if name in _ENDS:
            self._imply(*_ENDS[name])
        elif name in _PARAGRAPHS or name == "div":
            self._imply(*_ENDS_PARAGRAPH)
        above = self._stack[-1]
        dropped = above.dropped or name in _DROPPED or _is_hidden(tag)
        element = _Element(name, dropped)
        self._stack.append(element)
        self._open[name] += 1
        if not dropped:
            self._begin(element, above, tag)

    def end(self, name: str) -> None:
        if not self._open[name]:
            return
        while True:
            element = self._stack.pop()
            self._open[element.name] -= 1
            if not element.dropped:
                self._finish(element)
            if element.name == name:
                return

    def say(self, text: str) -> None:
        if self._stack[-1].name == "title" and not self._open["svg"]:
            self._title = self._title or " ".join(text.split())[:300]
        elif self._stack[-1].dropped:
            return
        elif self._code is not None:
            self._code.append(text)
        else:
            self._flow(text)

    def finish(self) -> Readable:
        while len(self._stack) > 1:
            self.end(self._stack[-1].name)
        return Readable(self._layout.whole(), self._title, tuple(self._links), tuple(self._marks))

    def _flow(self, text: str) -> None:
        words = " ".join(text.split())
        if words != text and text[:1].isspace():
            self._layout.space()
        if words:
            self._layout.put(words)
            if text[-1:].isspace():
                self._layout.space()

    def _void(self, tag: Start) -> None:
        if tag.name == "base":
            self._base = self._resolved(tag.attributes.get("href", "")) or self._base
        if self._stack[-1].dropped:
            return
        if self._code is not None:
            self._code.append("\n" if tag.name == "br" else "")
        elif tag.name == "br":
            self._layout.line()
        elif tag.name == "hr":
            self._layout.part(2)
            self._layout.put("---")
            self._layout.part(2)
        elif tag.name == "img" and tag.attributes.get("alt", "").strip() and not _is_hidden(tag):
            self._flow(f"[image: {tag.attributes['alt'].strip()[:300]}]")

    def _begin(self, element: _Element, above: _Element, tag: Start) -> None:
        name, layout = element.name, self._layout
        if self._code is not None:
            if name in _LINES and self._code and not self._code[-1].endswith("\n"):
                self._code.append("\n")
            return
        layout.part(self._gap(name))
        element.begun = layout.size
        if name == "a":
            element.link = self._link(tag.attributes.get("href", ""))
        elif name == "pre":
            self._code = []
        elif name in _CODE:
            layout.glue("`")
        elif name in _HEADINGS:
            layout.lead += _HEADINGS[name]
        elif name == "li":
            above.children += 1
            layout.lead += f"{above.children}. " if above.name == "ol" else "- "
        elif name in _CELLS and above.name == "tr":
            above.children += 1
            if above.children > 1:
                layout.divide(" | ")
            layout.hold()
        self._indent(name)

    def _finish(self, element: _Element) -> None:
        name, layout = element.name, self._layout
        if self._code is not None:
            if name == "pre":
                self._fence("".join(self._code).strip("\n"))
            return
        if element.link and layout.size > element.begun:
            layout.tail(" ")
            self._marks.append((layout.size, element.link))
            layout.tail(f"[{element.link}]")
        elif name in _CODE:
            layout.tail("`")
        elif name == "li" or name in _HEADINGS:
            layout.lead = ""
        elif name in _CELLS:
            layout.release()
        self._indent(name)
        layout.part(self._gap(name))

    def _fence(self, code: str) -> None:
        self._code = None
        if code:
            longest = max(map(len, re.findall("`+", code)), default=0)
            fence = "`" * max(3, longest + 1)
            self._layout.put(f"{fence}\n{code}\n{fence}")
        self._layout.part(2)

    def _gap(self, name: str) -> int:
        if name in _LINES or (name in _LISTS and self._open["li"]):
            return 1
        return 2 if name in _PARAGRAPHS else 0

    def _indent(self, name: str) -> None:
        if name == "blockquote" or name in _LISTS:
            lists = sum(self._open[each] for each in _LISTS)
            quotes = min(self._open["blockquote"], _DEPTH)
            self._layout.margin = "> " * quotes + "  " * min(max(lists - 1, 0), _DEPTH)

    def _imply(self, ended: Names, barrier: Names) -> None:
        for element in self._stack[: -_NEAR - 1 : -1]:
            if element.name in barrier:
                return
            if element.name in ended:
                self.end(element.name)
                return

    def _link(self, href: str) -> int:
        if href.startswith("#"):
            return 0
        url = self._resolved(href)
        if not url or urldefrag(url)[0] == self._page:
            return 0
        return self._links.setdefault(url, len(self._links) + 1)

    def _resolved(self, href: str) -> str:
        """Return the absolute URL of a link, if it leads to a page."""
        try:
            url = urljoin(self._base, href.strip()[: _URL_LIMIT + 1]).replace(" ", "%20")
            parts = urlsplit(url)
        except ValueError:
            return ""
        known = parts.scheme in {"http", "https"} and bool(parts.netloc)
        return url if known and href and len(url) <= _URL_LIMIT else ""


def _is_hidden(tag: Start) -> bool:
    found = tag.attributes
    return (
        "hidden" in found
        or found.get("aria-hidden") == "true"
        or found.get("role") == "navigation"
        or bool(_UNSEEN.search(found.get("style", "")))
    )
