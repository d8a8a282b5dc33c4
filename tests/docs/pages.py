"""The documents as a reader finds them: pages, blocks of code, commands, links."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_BLOCK = re.compile(r"^```(\w*(?: \S+)?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A language, maybe a path, and the text."""
_SPAN = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path, language: str) -> list[str]:
    return [code for kind, code in _BLOCK.findall(page.read_text("utf-8")) if kind == language]


def prose(page: Path) -> str:
    return _BLOCK.sub("", page.read_text("utf-8"))


def code_lines(page: Path) -> Iterator[str]:
    """What a reader could type: lines of shell blocks, without their comments, and code in the text."""
    for block in blocks(page, "sh"):
        yield from (re.sub(r"(^|\s)#.*", "", line) for line in block.splitlines())
    yield from _SPAN.findall(prose(page))


def commands(page: Path, program: str) -> Iterator[list[str]]:
    """The arguments of each call of the program, in a pipe or alone, without a file it is written to."""
    for line in code_lines(page):
        for part in line.split("|"):
            if re.match(rf"\s*{program}(\s|$)", part):
                yield shlex.split(part.partition(" > ")[0])[1:]


def links(page: Path) -> Iterator[str]:
    """Those that stay in this repository."""
    for link in _LINK.findall(prose(page)):
        if not re.match(r"[a-z]+:", link):
            yield link


def anchors(page: Path) -> set[str]:
    """What a link can point at within a page."""
    headings = _HEADING.findall(prose(page))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
