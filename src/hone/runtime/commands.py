"""Split a command line into simple commands, as far as possible without being a shell.

Use the result for advice only: quoting, variables and scripts can hide anything. A line that cannot be
parsed is split roughly.
"""

import re
import shlex
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from hone.core.regex import regex

_OPERATORS = ";|&()<>\n"
_ENDS = frozenset({";", "|", "&", "(", ")", "\n"})
_KEYWORDS = frozenset(
    {"then", "do", "else", "elif", "if", "while", "until", "!", "{", "}", "time", "done", "fi"}
)
_CARRIERS = frozenset(
    {"env", "nohup", "nice", "ionice", "command", "builtin", "exec", "stdbuf", "setsid", "xargs", "timeout"}
)
_NUMBERED = frozenset({"timeout", "nice"})
_ELEVATORS = frozenset({"sudo", "doas", "run0"})
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish", "ash"})
_NESTED = regex(r"\$\(([^()]*)\)|`([^`]*)`|[<>]\(([^()]*)\)")
_ASSIGNMENT = regex(r"[A-Za-z_]\w*\+?=.*", re.DOTALL)
_DEPTH = 4


class Simple(Struct, frozen=True):
    """One program with its words. `piped` names the programs it is fed by, `targets` the files it writes by
    redirection; `elevated` if a tool for other people's rights stands before it."""

    program: str
    words: tuple[str, ...]
    piped: tuple[str, ...] = ()
    targets: tuple[str, ...] = ()
    elevated: bool = False

    @property
    def flags(self) -> frozenset[str]:
        """Short options one by one, long ones without their values."""
        found: set[str] = set()
        for word in self.words:
            if word.startswith("--"):
                found.add(word.partition("=")[0])
            elif word.startswith("-"):
                found.update(word[1:])
        return frozenset(found)

    @property
    def plain(self) -> bool:
        """Tell whether every word stands for itself, and nothing is redirected."""
        return (
            not self.targets and not self.elevated and not any(set("$`<>*?[~") & set(w) for w in self.words)
        )

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if not word.startswith("-"))

    def __str__(self) -> str:
        return shlex.join((self.program, *self.words))


def simple_commands(text: str, depth: int = 0) -> Iterator[Simple]:
    """Every command in the text, and those inside its substitutions and `sh -c` strings."""
    if depth > _DEPTH:
        return
    piped: tuple[str, ...] = ()
    for words, operator in _pieces(text):
        command = _simple(words, piped)
        if command:
            yield command
            yield from _carried(command, depth)
        piped = (*piped[-_DEPTH:], command.program) if command and operator in {"|", "|&"} else ()
    for found in _NESTED.finditer(text):
        inner = next(group for group in found.groups() if group is not None)
        yield from simple_commands(inner, depth + 1)


def _pieces(text: str) -> Iterator[tuple[list[str], str]]:
    """The words between two operators, and the operator that ends them."""
    words: list[str] = []
    for token in _tokens(text):
        if token and set(token) <= set(_OPERATORS) and token[0] in _ENDS:
            yield words, token
            words = []
        else:
            words.append(token)
    yield words, ""


def _tokens(text: str) -> list[str]:
    lexer = shlex.shlex(text, posix=True, punctuation_chars=_OPERATORS)
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        return list(lexer)
    except ValueError:
        return re.findall(rf"[{re.escape(_OPERATORS)}]+|[^\s{re.escape(_OPERATORS)}'\"]+", text)


def _simple(words: Sequence[str], piped: tuple[str, ...]) -> Simple | None:
    kept, targets = _redirected(words)
    rest = deque(kept)
    elevated = False
    while rest:
        word = rest.popleft()
        program = word.rpartition("/")[2]
        if word in _KEYWORDS or _ASSIGNMENT.fullmatch(word):
            continue
        if program not in _CARRIERS and not (program in _ELEVATORS and rest):
            return Simple(program, tuple(rest), piped, targets, elevated)
        elevated = elevated or program in _ELEVATORS
        while rest and (rest[0].startswith("-") or (program in _NUMBERED and rest[0][:1].isdigit())):
            rest.popleft()
    return Simple("", (), piped, targets, elevated) if targets or elevated else None


def _redirected(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """The words without redirections, and the files that are written to."""
    kept: list[str] = []
    targets: list[str] = []
    rest = iter(words)
    for word in rest:
        if word and set(word) <= {"<", ">", "&", "|"}:
            target = next(rest, "")
            if ">" in word and target:
                targets.append(target)
        else:
            kept.append(word)
    return kept, tuple(targets)


def _carried(command: Simple, depth: int) -> Iterator[Simple]:
    """Commands that are arguments of this one."""
    if command.program in _SHELLS and "c" in command.flags:
        for word in command.operands[:1]:
            yield from simple_commands(word, depth + 1)
    elif command.program == "eval":
        yield from simple_commands(" ".join(command.words), depth + 1)
    elif command.program == "find":
        starts = [index for index, word in enumerate(command.words) if word in {"-exec", "-execdir", "-ok"}]
        for start, end in pairwise([*starts, len(command.words)]):
            yield from simple_commands(shlex.join(command.words[start + 1 : end]), depth + 1)
