"""Parse a bash command line into commands, words and redirections. Nothing is run or expanded.

It reads from left to right and rarely goes back, so the time is proportional to the length. A line that is
invalid or nested too deeply is marked as uncertain; nothing raises.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec.structs import replace

from hone.core.regex import regex
from hone.runtime.shell_syntax import (
    ParsedCommand,
    ParsedLine,
    ParsedWord,
    PieceKind,
    Redirection,
    WordPiece,
    unescape,
)

DEEPEST = 24
"""The deepest nesting of substitutions."""
RETRIES = 8
"""How many times `((` may turn out not to be arithmetic."""

_BLANKS = " \t\r"
_META = frozenset(" \t\r\n;&|()<>")
_TEXT = regex(r"[^\s;&|()<>\\'\"$`*?\[{~]+")
_LITERAL_BRACES = regex(r"\{(?![^{}\s]{0,99}\.\.)[^{},\s;&|()<>\\'\"$`*?\[~]{0,99}\}|\{(?=[\s;&|()<>]|\Z)")
_LONE_BRACKET = regex(r"\[(?=[\s;&|()<>]|\Z)")
_QUOTED = regex(r"[^\\\"$`]+")
_REDIRECTION = regex(r"&>>|&>|<<<|<<-|<<|<>|<&|>>|>&|>\||<|>")
_OPERATOR = regex(r"&&|\|\||;;&|;;|;&|\|&|[;|&\n]")
_NAME = regex(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!_-]")
_WHOLE_NAME = regex(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9@*])(?:\[[@*]\])?\}")
_BACKTICKS = regex(r"`([^`\\]*(?:\\.[^`\\]*)*)`", re.DOTALL)
_DESCRIPTOR = regex(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
_CONTROL = regex(r"[\x00-\x08\x0b-\x1f\x7f]")


def parse(text: str) -> ParsedLine:
    doubts = _Doubts()
    commands = _Parser(text, doubts).read()
    doubts.add(_CONTROL.search(text) is not None)
    return ParsedLine(commands, doubts.certain, doubts.too_deep)


def _case(words: list[ParsedWord]) -> int:
    """Return 1 where a `case` begins, whose patterns end with a parenthesis, and -1 where it ends."""
    first = words[0] if words else None
    if first is None or not first.is_bare:
        return 0
    return (first.text == "case") - (first.text == "esac")


@dataclass(slots=True)
class _Doubts:
    """State that all parsers of one line share."""

    certain: bool = True
    too_deep: bool = False
    retries: int = RETRIES
    scopes: Iterator[int] = field(default_factory=lambda: iter(range(1, 1_000_000_000)))

    def add(self, doubtful: bool) -> None:
        self.certain = self.certain and not doubtful


@dataclass(slots=True)
class _Parser:
    text: str
    doubts: _Doubts
    depth: int = 0
    scope: tuple[int, ...] = ()
    at: int = 0
    waiting: list[Redirection] = field(default_factory=list)
    """Here-documents whose lines come next."""

    def read(self) -> tuple[ParsedCommand, ...]:
        commands = tuple(self._commands())
        self.doubts.add(bool(self.waiting))
        return commands

    def _commands(self, closer: str = "") -> list[ParsedCommand]:
        """Read up to the closing parenthesis, or to the end."""
        found: list[ParsedCommand] = []
        words: list[ParsedWord] = []
        redirections: list[Redirection] = []
        outer, cases = self.scope, 0

        def end(operator: str) -> None:
            nonlocal cases
            if words or redirections:
                cases += _case(words)
                found.append(ParsedCommand(tuple(words), tuple(redirections), operator, self.scope))
                words.clear()
                redirections.clear()
            elif found and found[-1].operator == ")" and operator in ("|", "|&"):
                found[-1] = replace(found[-1], operator=operator)

        while self._skip_blanks():
            here = self.text[self.at]
            if here == ")":
                self.at += 1
                end(")")
                if closer and self.scope == outer and cases <= 0:
                    return found
                self.doubts.add(self.scope == outer)
                self.scope = outer if self.scope == outer else self.scope[:-1]
            elif self._is_arithmetic(words) and (piece := self._arithmetic("((")):
                words.append(ParsedWord((piece,)))
            elif here == "(":
                self.at += 1
                self.doubts.add(bool(words))  # a function, or an array
                end("(")
                self._open()
            elif redirection := self._redirection():
                redirections.append(redirection)
            elif operator := _OPERATOR.match(self.text, self.at):
                self.at = operator.end()
                end(operator[0])
                if operator[0] == "\n":
                    self._read_here_documents()
            else:
                self._add_word(words)
        end("")
        self.doubts.add(bool(closer) or self.scope != outer)
        self.scope = outer
        return found

    def _open(self) -> None:
        deep = len(self.scope) >= DEEPEST
        self.doubts.add(deep)
        self.scope = self.scope if deep else (*self.scope, next(self.doubts.scopes))

    def _skip_blanks(self) -> bool:
        """Skip blanks and comments. Return False at the end."""
        text = self.text
        while self.at < len(text):
            if text[self.at] in _BLANKS:
                self.at += 1
            elif text.startswith("\\\n", self.at):
                self.at += 2
            elif text[self.at] == "#":
                end = text.find("\n", self.at)
                self.at = len(text) if end < 0 else end
            else:
                return True
        return False

    def _add_word(self, words: list[ParsedWord]) -> None:
        start = self.at
        word = self._word()
        is_redirected = self.text[self.at : self.at + 1] in ("<", ">")
        if is_redirected and _DESCRIPTOR.fullmatch(self.text, start, self.at):
            return  # the number of the redirected stream
        words.append(word)
        if len(words) == 1 and word.text == "[[" and not any(piece.quoted for piece in word.pieces):
            self._condition(words)

    def _condition(self, words: list[ParsedWord]) -> None:
        """Read up to `]]`: inside, no operator ends a command or redirects."""
        while self._skip_blanks():
            if self.text[self.at] in _META and not self._is_process():
                words.append(ParsedWord((WordPiece(PieceKind.UNKNOWN, self.text[self.at]),)))
                self.at += 1
                continue
            words.append(self._word())
            if words[-1].text == "]]":
                return
        self.doubts.add(True)

    def _redirection(self) -> Redirection | None:
        found = _REDIRECTION.match(self.text, self.at)
        if found is None or self._is_process():
            return None
        self.at = found.end()
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1
        redirection = Redirection(found[0], self._word())
        self.doubts.add(not redirection.target.pieces)
        if found[0] in ("<<", "<<-"):
            self.waiting.append(redirection)
        return redirection

    def _read_here_documents(self) -> None:
        for redirection in self.waiting:
            lines = self._lines(redirection.target.text, tabs=redirection.operator == "<<-")
            if any(piece.quoted for piece in redirection.target.pieces):
                redirection.body = ParsedWord((WordPiece(PieceKind.TEXT, lines, quoted=True),))
            else:
                redirection.body = ParsedWord(tuple(self._inside(lines)._quoted("")))
        self.waiting.clear()

    def _lines(self, ending: str, *, tabs: bool) -> str:
        start = self.at
        while self.at < len(self.text):
            end = self.text.find("\n", self.at)
            end = len(self.text) if end < 0 else end
            line, before = self.text[self.at : end], self.at
            self.at = min(end + 1, len(self.text))
            if (line.lstrip("\t") if tabs else line) == ending:
                return self.text[start:before]
        self.doubts.add(True)
        return self.text[start:]

    def _word(self) -> ParsedWord:
        pieces: list[WordPiece] = []
        text = self.text
        while self.at < len(text):
            here = text[self.at]
            if here in _META and not (here in "<>" and self._is_process()):
                break
            if found := self._plain(pieces):
                self.at = found.end()
                pieces.append(WordPiece(PieceKind.TEXT, found[0]))
            elif here in "*?[{~":
                inside = here == "~" and pieces and not pieces[-1].text.endswith(("=", ":"))
                self.at += 1
                pieces.append(WordPiece(PieceKind.TEXT if inside else PieceKind.PATTERN, here))
            else:
                pieces.extend(self._special(here))
        return ParsedWord(tuple(pieces))

    def _plain(self, pieces: list[WordPiece]) -> re.Match[str] | None:
        """Match literal text."""
        found = _TEXT.match(self.text, self.at) or _LITERAL_BRACES.match(self.text, self.at)
        return found or (None if pieces else _LONE_BRACKET.match(self.text, self.at))

    def _special(self, here: str) -> list[WordPiece]:
        match here:
            case "\\":
                letter = self.text[self.at + 1 : self.at + 2]
                self.at = min(self.at + 2, len(self.text))
                self.doubts.add(not letter)
                return [] if letter == "\n" else [WordPiece(PieceKind.TEXT, letter or "\\", quoted=True)]
            case "'":
                return [self._single()]
            case '"':
                self.at += 1
                return self._quoted('"')
            case "$" if self.text.startswith("$'", self.at):
                return [self._ansi()]
            case "$" if self.text.startswith('$"', self.at):
                self.at += 2
                return self._quoted('"')
            case "$":
                return [self._dollar(quoted=False)]
            case "`":
                return [self._backticks(quoted=False)]
            case "<" | ">":
                self.at += 1
                return [self._substitution(here, quoted=False)]
        self.at += 1  # white space at which bash does not split
        return [WordPiece(PieceKind.TEXT, here)]

    def _single(self) -> WordPiece:
        start = self.at + 1
        end = self.text.find("'", start)
        self.doubts.add(end < 0)
        end = len(self.text) if end < 0 else end
        self.at = min(end + 1, len(self.text))
        return WordPiece(PieceKind.TEXT, self.text[start:end], quoted=True)

    def _ansi(self) -> WordPiece:
        """Read $'…'."""
        start = self.at = self.at + 2
        while self.at < len(self.text) and self.text[self.at] != "'":
            self.at += 2 if self.text[self.at] == "\\" else 1
        end = min(self.at, len(self.text))
        self.doubts.add(self.at >= len(self.text))
        self.at = min(end + 1, len(self.text))
        body = self.text[start:end]
        return WordPiece(PieceKind.UNKNOWN if "\\" in body else PieceKind.TEXT, unescape(body), quoted=True)

    def _quoted(self, closer: str) -> list[WordPiece]:
        """Read up to the closing quote; without one up to the end, as in a here-document."""
        pieces: list[WordPiece] = [WordPiece(PieceKind.TEXT, "", quoted=True)]
        text = self.text
        while self.at < len(text):
            here = text[self.at]
            if here == closer:
                self.at += 1
                return pieces
            if plain := _QUOTED.match(text, self.at):
                self.at = plain.end()
                pieces.append(WordPiece(PieceKind.TEXT, plain[0], quoted=True))
            elif here == "\\":
                letter = text[self.at + 1 : self.at + 2]
                kept = "" if letter == "\n" else letter if letter in ("$", "`", '"', "\\") else here + letter
                self.at += 2
                pieces.append(WordPiece(PieceKind.TEXT, kept, quoted=True))
            elif here in "$`":
                pieces.append(self._dollar(quoted=True) if here == "$" else self._backticks(quoted=True))
            else:  # a quote in a here-document
                self.at += 1
                pieces.append(WordPiece(PieceKind.TEXT, here, quoted=True))
        self.at = len(text)
        self.doubts.add(bool(closer))
        return pieces

    def _dollar(self, *, quoted: bool) -> WordPiece:
        start = self.at
        if self.text.startswith("$((", start) and (piece := self._arithmetic("$((")):
            return piece
        follows = self.text[start + 1 : start + 2]
        if follows == "(":
            self.at += 1
            return self._substitution("$", quoted=quoted)
        if follows == "{":
            return self._parameter(quoted=quoted)
        if name := _NAME.match(self.text, start + 1):
            self.at = name.end()
            return WordPiece(PieceKind.VARIABLE, f"${name[0]}", quoted, name[0])
        self.doubts.add(self.text.startswith("\\\n", start + 1))  # what follows is on the next line
        self.at += 1
        return WordPiece(PieceKind.UNKNOWN if follows == "[" else PieceKind.TEXT, "$", quoted)

    def _substitution(self, mark: str, *, quoted: bool) -> WordPiece:
        """Read the commands in $(…), <(…) or >(…), from the parenthesis on."""
        start, outer = self.at - 1, self.scope
        if not self._enter():
            return WordPiece(PieceKind.UNKNOWN, mark, quoted)
        self.at += 1
        self._open()
        inner = tuple(self._commands(")"))
        self.scope, self.depth = outer, self.depth - 1
        return WordPiece(PieceKind.SUBSTITUTION, self.text[start : self.at], quoted, mark, inner)

    def _backticks(self, *, quoted: bool) -> WordPiece:
        found = _BACKTICKS.match(self.text, self.at)
        if found is None or not self._enter():
            self.doubts.add(True)
            self.at = len(self.text)
            return WordPiece(PieceKind.UNKNOWN, "`", quoted)
        self.at = found.end()
        inside = re.sub(r'\\([$`\\"])' if quoted else r"\\([$`\\])", r"\1", found[1])
        nested = self._inside(inside)
        nested._open()
        inner = nested.read()
        self.depth -= 1
        return WordPiece(PieceKind.SUBSTITUTION, found[0], quoted, "`", inner)

    def _parameter(self, *, quoted: bool) -> WordPiece:
        """Read ${…}: a variable, or something made of one."""
        start = self.at
        if not self._enter():
            return WordPiece(PieceKind.UNKNOWN, "$", quoted)
        self.at += 2
        inner = self._up_to("}", quoted=quoted)
        self.depth -= 1
        text = self.text[start : self.at]
        if name := _WHOLE_NAME.fullmatch(text):
            return WordPiece(PieceKind.VARIABLE, text, quoted, name[1])
        return WordPiece(PieceKind.UNKNOWN, text, quoted, inner=inner)

    def _arithmetic(self, mark: str) -> WordPiece | None:
        """Read ((…)). Return None if the parentheses turn out to be those of subshells."""
        start = self.at
        if self.doubts.retries < 0:
            return None
        if not self._enter():
            return WordPiece(PieceKind.UNKNOWN, mark)
        self.at += len(mark)
        inner = self._up_to(")", quoted=False)
        self.depth -= 1
        if self.at >= len(self.text) or self.text[self.at] == ")":
            self.doubts.add(self.at >= len(self.text))
            self.at = min(self.at + 1, len(self.text))
            return WordPiece(PieceKind.UNKNOWN, self.text[start : self.at], inner=inner)
        self.at = start
        self.doubts.retries -= 1
        self.doubts.add(True)
        return None

    def _up_to(self, closer: str, *, quoted: bool) -> tuple[ParsedCommand, ...]:
        """Skip past the closing character, and return the commands that run on the way."""
        inner: list[ParsedCommand] = []
        opened, text = 0, self.text
        while self.at < len(text):
            here = text[self.at]
            if here == closer and not opened:
                self.at += 1
                return tuple(inner)
            if here in "\"'`$\\" and not (here == "'" and quoted):
                for piece in self._special(here):
                    inner += piece.inner
            else:
                opened += (here == "(") - (here == ")") if closer == ")" else 0
                self.at += 1
        self.doubts.add(True)
        return tuple(inner)

    def _is_arithmetic(self, words: list[ParsedWord]) -> bool:
        is_first = not words or (len(words) == 1 and words[0].text == "for")
        return is_first and self.text.startswith("((", self.at)

    def _is_process(self) -> bool:
        return self.text[self.at] in "<>" and self.text.startswith("(", self.at + 1)

    def _enter(self) -> bool:
        """Go one level deeper. Return False if that is too deep; then the rest of the line is not read."""
        if self.depth < DEEPEST:
            self.depth += 1
            return True
        self.doubts.add(True)
        self.doubts.too_deep = True
        self.at = len(self.text)
        return False

    def _inside(self, text: str) -> "_Parser":
        """Return a parser for a text inside this one."""
        return _Parser(text, self.doubts, self.depth, self.scope)
