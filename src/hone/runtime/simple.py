"""A simple shell command: one program with its words, and what is known about its input and output."""

import shlex
from collections.abc import Sequence

from msgspec import Struct

from hone.core.regex import regex
from hone.runtime.shell_syntax import unescape

_FORMAT = regex(r"%[-0-9.]{0,9}[sbqdi]")


class Simple(Struct, frozen=True):
    """One program with its words, in the order in which they are written.

    `argv` has all words of the command, `sudo` and the like included; `program` and `words` come without
    them. A command of assignments or redirections alone has no program.
    """

    program: str
    words: tuple[str, ...]
    piped: tuple[str, ...] = ()
    """The programs whose output it reads, the nearest last."""
    targets: tuple[str, ...] = ()
    """The files that it writes by redirection."""
    elevated: bool = False
    """A program that changes rights, such as sudo, precedes it."""
    argv: tuple[str, ...] = ()
    literal: bool = False
    """Nothing in its words is expanded, and the whole line was parsed with certainty."""
    redirected: bool = False
    assignments: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    """The files that it reads by redirection."""
    substitutions: tuple[str, ...] = ()
    """Every $(…), `…`, <(…) and >(…) in it, as written."""
    inlined: tuple[str, ...] = ()
    """The programs in its substitutions."""
    input: str | None = None
    """Its input, if known."""
    carriers: tuple[str, ...] = ()
    """The programs that run it: sudo, xargs, find and the like."""
    open_ended: bool = False
    """It gets further, unknown words."""
    scope: tuple[int, ...] = ()
    """The subshells around it, by number."""
    unread: bool = False
    """Stands for a part of the line that is nested too deeply to read."""

    @property
    def plain(self) -> bool:
        """Whether the shell runs exactly `argv`, with nothing expanded, assigned or redirected."""
        return self.literal and bool(self.argv) and not (self.redirected or self.assignments)

    @property
    def flags(self) -> frozenset[str]:
        """Return short options one by one, long ones without their values."""
        found: set[str] = set()
        for word in self.words:
            if word.startswith("--"):
                found.add(word.partition("=")[0])
            elif word.startswith("-"):
                found.update(word[1:])
        return frozenset(found)

    @property
    def operands(self) -> tuple[str, ...]:
        return tuple(word for word in self.words if not word.startswith("-"))

    def values(self, letter: str, *names: str) -> list[str]:
        """Return the values of an option, written as -o VALUE, -oVALUE, --output VALUE or --output=VALUE."""
        found: list[str] = []
        for word, after in zip(self.words, (*self.words[1:], ""), strict=False):
            name, sign, value = word.partition("=")
            if name in names:
                found.append(value if sign else after)
            elif letter and word.startswith("-") and not word.startswith("--") and letter in word[1:]:
                found.append(word[1:].partition(letter)[2] or after)
        return found

    def __str__(self) -> str:
        return shlex.join((self.program, *self.words))


def shell_script(words: Sequence[str]) -> tuple[str, bool]:
    """Return what a shell is told to run: a file, or with -c a text; nothing if it reads its input."""
    is_text, at = False, 0
    while at < len(words) and words[at].startswith(("-", "+")) and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        if word in ("--rcfile", "--init-file") or (not word.startswith("--") and word[-1] in "oO"):
            at += 1
        if word == "--command" or (not word.startswith("--") and "c" in word[1:]):
            is_text = True
        if not word.startswith("--") and "s" in word[1:]:
            return "", False
    return (words[at] if at < len(words) else ""), is_text


def known_output(command: Simple, *, to_file: bool = False) -> str | None:
    """Return the known output of a command."""
    if bool(command.targets) is not to_file or command.open_ended or command.inlined:
        return None
    words = command.words
    match command.program:
        case "echo":
            plain = [word for word in words if word not in ("-n", "-e", "-E", "-ne", "-en")]
            text = " ".join(plain)
            return unescape(text) if "e" in command.flags else text
        case "printf" if words:
            return _formatted(words)
        case "cat" | "tee" if not command.operands or command.program == "tee":
            return command.input
        case "pwd":
            return "$PWD"
    return None


def _formatted(words: Sequence[str]) -> str:
    """Return roughly what printf prints."""
    rest = iter(words[1:])
    text = _FORMAT.sub(lambda _: next(rest, ""), unescape(words[0]))
    return " ".join((text, *rest))
