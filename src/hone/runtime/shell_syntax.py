"""The parts of a bash command line: commands, words and their pieces, as `shell_parser` reads them."""

import re
from dataclasses import dataclass
from enum import Enum
from itertools import takewhile

from msgspec import Struct

from hone.core.regex import regex

_ESCAPE = regex(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|c.|.)", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b"}


class PieceKind(Enum):
    TEXT = "text"
    PATTERN = "pattern"
    """A glob, a tilde or a brace that the shell expands."""
    VARIABLE = "variable"
    SUBSTITUTION = "substitution"
    UNKNOWN = "unknown"
    """Another expansion: a default value, arithmetic."""


class WordPiece(Struct, frozen=True):
    """A part of a word. `text` is as written, except that quotes are gone; `inner` are the commands in it."""

    kind: PieceKind
    text: str
    quoted: bool = False
    name: str = ""
    inner: tuple["ParsedCommand", ...] = ()


class ParsedWord(Struct, frozen=True):
    pieces: tuple[WordPiece, ...]

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_literal(self) -> bool:
        return all(piece.kind is PieceKind.TEXT for piece in self.pieces)

    @property
    def is_bare(self) -> bool:
        """Whether it is written without quotes and expansions, as a reserved word must be."""
        return all(piece.kind is PieceKind.TEXT and not piece.quoted for piece in self.pieces)

    @property
    def bare_start(self) -> str:
        """The text before the first quote or expansion."""
        bare = takewhile(lambda piece: piece.kind is PieceKind.TEXT and not piece.quoted, self.pieces)
        return "".join(piece.text for piece in bare)


@dataclass(slots=True)
class Redirection:
    """The lines of a here-document are added when the parser reaches them."""

    operator: str
    target: ParsedWord
    body: ParsedWord | None = None


class ParsedCommand(Struct, frozen=True):
    """`operator` ends it. `scope` are the subshells around it, by number."""

    words: tuple[ParsedWord, ...]
    redirections: tuple[Redirection, ...]
    operator: str
    scope: tuple[int, ...]


class ParsedLine(Struct, frozen=True):
    """`certain`: it is valid, and bash would read it the same way. `too_deep`: parts of it were not read."""

    commands: tuple[ParsedCommand, ...]
    certain: bool
    too_deep: bool


def unescape(text: str) -> str:
    """Decode the escapes in $'…', or in a printf format."""
    return _ESCAPE.sub(_decode, text)


def _decode(found: re.Match[str]) -> str:
    body = found[1]
    if body[0] in "xuU" and len(body) > 1:
        number = int(body[1:], 16)
        return chr(number) if number <= 0x10FFFF else ""
    if body[0] in "01234567":
        return chr(int(body, 8) & 0xFF)
    if body[0] == "c" and len(body) > 1:
        return chr(ord(body[1]) & 0x1F)
    return _LETTERS.get(body, body)
