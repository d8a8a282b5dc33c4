"""Split HTML into tags and texts, in one pass for any input.

html.parser needs quadratic time on a page of unclosed tags, which is hours for 2 MiB. Here each search
continues where the last one ended, or ends the document.
"""

import re
from collections.abc import Iterator, Mapping
from html import unescape

from msgspec import Struct

from hone.core.regex import regex


class Start(Struct, frozen=True):
    name: str
    attributes: Mapping[str, str] = {}


class End(Struct, frozen=True):
    name: str


Token = str | Start | End

_RAW = ("iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp")
_OPAQUE = frozenset(_RAW) - {"textarea", "title"}
_CLOSERS = {name: regex(rf"</{name}(?=[\s/>])", re.ASCII | re.IGNORECASE) for name in _RAW}
_TAG = regex(r"</?([a-zA-Z][^\s/>]*)", re.ASCII)
_ATTRIBUTE = regex(
    r"""[\s/]*(?P<name>[^\s/>=][^\s/>=]*|=[^\s/>=]*)
        (?:\s*=\s*(?:"(?P<double>[^"]*)(?:"|\Z)|'(?P<single>[^']*)(?:'|\Z)|(?P<bare>[^\s>]*)))?""",
    re.ASCII | re.VERBOSE,
)
_TAG_END = regex(r"[\s/]*>", re.ASCII)
_COMMENT_END = regex(r"--!?>")


def tokens(html: str) -> Iterator[Token]:
    """Yield tags and texts, without comments, declarations, scripts and styles."""
    at = 0
    while at < len(html):
        opening = html.find("<", at)
        if opening != at:
            end = opening if opening >= 0 else len(html)
            yield decoded(html[at:end])
            at = end
            continue
        tag = _TAG.match(html, at)
        if tag is None:
            skipped = _skip(html, at)
            if skipped == at + 1:
                yield "<"
            at = skipped
            continue
        name = tag[1].lower()
        attributes, at = _attributes(html, tag.end())
        if html[tag.start() + 1] == "/":
            yield End(name)
            continue
        yield Start(name, attributes)
        if name in _CLOSERS:
            closer = _CLOSERS[name].search(html, at)
            end = closer.start() if closer else len(html)
            if name not in _OPAQUE:
                yield decoded(html[at:end])
            at = end


def decoded(text: str) -> str:
    """Return the text with its references (`&amp;`) decoded."""
    if "&" not in text:
        return text
    try:
        return unescape(text)
    except ValueError:
        # A numeric reference of thousands of digits.
        return text


def _skip(html: str, at: int) -> int:
    """Return where a comment or a declaration ends; one character further if the sign is only a sign."""
    if html.startswith("<!--", at):
        comment = _COMMENT_END.search(html, at + 2)
        return comment.end() if comment else len(html)
    if html[at + 1 : at + 2] in {"!", "?", "/"}:
        end = html.find(">", at)
        return end + 1 if end >= 0 else len(html)
    return at + 1


def _attributes(html: str, at: int) -> tuple[dict[str, str], int]:
    """Return the attributes of a tag. The first of each name counts; a tag without end lasts to the end of
    the document."""
    found: dict[str, str] = {}
    while at < len(html):
        end = _TAG_END.match(html, at)
        if end:
            return found, end.end()
        attribute = _ATTRIBUTE.match(html, at)
        if attribute is None:
            break
        value = attribute["double"] or attribute["single"] or attribute["bare"] or ""
        found.setdefault(attribute["name"].lower(), decoded(value))
        at = attribute.end()
    return found, len(html)
