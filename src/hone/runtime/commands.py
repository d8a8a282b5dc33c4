"""Find the simple commands in a bash command line, including those in substitutions, behind `sudo` or
`xargs`, and in texts that the line passes to a shell.

Use it for advice and for permission rules. For advice it follows variables and texts as far as the line
itself shows them; scripts and other programs can hide anything. For rules there is `plain`: only then are
`argv` exactly the words that the shell runs.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from msgspec.structs import replace

from hone.core.regex import regex
from hone.runtime.carriers import ELEVATORS, LONGEST, MOST, base, executed, filled, found_paths, unwrap
from hone.runtime.shell_parser import parse
from hone.runtime.shell_syntax import ParsedCommand, ParsedWord, PieceKind, WordPiece
from hone.runtime.simple import Simple, known_output, shell_script

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "fish", "ash", "rbash"})
SOURCES = frozenset({"source", "."})
_KEYWORD = regex(r"if|then|elif|else|fi|while|until|do|done|esac|[{}!]|coproc|time")
_DECLARES = frozenset({"export", "declare", "local", "readonly", "typeset"})
_FILTERS = frozenset({"sort", "uniq", "head", "tail", "grep", "egrep", "cat", "tee"})
_FINDERS = frozenset({"find", "fd", "fdfind"})
_ASSIGNMENT = regex(r"([A-Za-z_]\w*)\+?=")
_BRACES = regex(r"([^{}]{0,200})\{([^{}]{0,500},[^{}]{0,500})\}([^{}]{0,200})")
_GIT_COMMAND = regex(
    r"(?:alias\.[^=]{1,99}(?==!)|core\.(?:pager|editor|sshcommand|fsmonitor)|sequence\.editor|diff\.external"
    r"|credential\.helper(?==!))=",
    re.IGNORECASE,
)
_DEPTH = 4
"""The deepest nesting of texts passed to a shell."""


def simple_commands(text: str) -> Iterator[Simple]:
    """Yield every command in the text. Nested commands count, too: a rule that allows the text has to allow
    each. A text without commands, such as a comment, runs nothing."""
    reader = _Reader(budget=6 * len(text) + 1000)
    yield from reader.read(text, 0)


@dataclass(slots=True)
class _Pipe:
    """What the next command of a pipeline reads."""

    programs: tuple[str, ...] = ()
    text: str | None = None
    source: Simple | None = None


@dataclass(slots=True)
class _Reader:
    """Knows the variables and files that the line itself sets. `budget` limits the characters it reads."""

    budget: int
    variables: dict[str, tuple[str, ...]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    texts: int = 0

    def read(self, text: str, depth: int) -> list[Simple]:
        self.budget -= len(text)
        if depth > _DEPTH or self.budget < 0:
            return [Simple("", (), unread=True)]
        line = parse(text)
        found = self._line(line.commands, depth, certain=line.certain)
        return [*found, Simple("", (), unread=True)] if line.too_deep else found

    def _read_inside(self, command: Simple, text: str, depth: int) -> list[Simple]:
        """Return the commands in a text that this command runs, in a new shell or in the same one."""
        self.texts += 1
        own = (*command.scope, -self.texts)
        in_this_shell = command.program in {"eval", *SOURCES}
        found: list[Simple] = []
        for each in self.read(text, depth):
            scope = command.scope if in_this_shell and not each.scope else (*own, *each.scope)
            found.append(replace(each, scope=scope, elevated=each.elevated or command.elevated))
        return found

    def _line(self, commands: Sequence[ParsedCommand], depth: int, *, certain: bool) -> list[Simple]:
        found: list[Simple] = []
        pipe, last = _Pipe(), None
        for each in commands:
            nested, command = self._command(each, pipe, depth, certain=certain)
            found += nested
            if command:
                found.append(command)
                found += self._carried(command, depth)
                self._note(command)
                last = command
            # What follows a group reads the output of its last command.
            pipe = self._pipe(pipe, last) if last and each.operator in ("|", "|&") else _Pipe()
        return found

    def _pipe(self, before: _Pipe, command: Simple) -> _Pipe:
        is_filter = command.program in _FILTERS and before.source is not None
        source = before.source if is_filter else command
        return _Pipe((*before.programs[-MOST:], command.program), known_output(command), source)

    def _command(
        self, parsed: ParsedCommand, pipe: _Pipe, depth: int, *, certain: bool
    ) -> tuple[list[Simple], Simple | None]:
        """Return the commands inside this one, and this one, unless it has only reserved words."""
        nested: list[Simple] = []
        words = _without_keywords(parsed.words, is_first=not pipe.programs)
        if len(words) > 1 and words[0].is_bare and words[0].text == "function":
            words, certain = words[2:], False
            return self._command(replace(parsed, words=tuple(words)), pipe, depth, certain=certain)
        assignments = self._assignments(words, nested, depth)
        argv = [text for word in words for text in self._fields(word, nested, depth)]
        simple = self._simple(argv, pipe)
        simple = self._redirected(simple, parsed, nested, depth)
        pieces = [piece for word in parsed.words for piece in word.pieces]
        if not (argv or assignments or parsed.redirections):
            return nested, None
        return nested, replace(
            simple,
            literal=certain and all(word.is_literal for word in words),
            redirected=bool(parsed.redirections),
            assignments=assignments,
            substitutions=tuple(each.text for each in pieces if each.kind is PieceKind.SUBSTITUTION),
            inlined=tuple(each.program for each in nested)[:MOST],
            scope=parsed.scope,
        )

    def _simple(self, argv: Sequence[str], pipe: _Pipe) -> Simple:
        bare = unwrap(argv)
        words, open_ended = bare.words, False
        if bare.carriers and bare.carriers[-1] == "xargs":
            words, open_ended = _given(words, dict(bare.options), pipe)
        return Simple(
            base(words[0]) if words else "",
            words[1:],
            pipe.programs,
            elevated=bool(ELEVATORS & {*bare.carriers}),
            argv=tuple(argv),
            input=pipe.text,
            carriers=bare.carriers,
            open_ended=open_ended,
        )

    def _assignments(self, words: list[ParsedWord], nested: list[Simple], depth: int) -> tuple[str, ...]:
        """Remove the leading assignments from the words, and remember what they set."""
        found: list[str] = []
        while words and _ASSIGNMENT.match(words[0].bare_start):
            found.append("".join(self._fields(words.pop(0), nested, depth, split=False)))
        if not words:
            self._set(found)
        return tuple(found)

    def _set(self, assignments: Sequence[str]) -> None:
        for each in assignments:
            name, _, value = each.partition("=")
            self.variables.pop(name, None)
            if len(value) <= LONGEST:
                self.variables[name] = (value,)

    def _note(self, command: Simple) -> None:
        """Remember what this command sets or writes."""
        words = command.words
        match command.program:
            case "for" if words[1:2] == ("in",):
                self.variables[words[0]] = tuple(word[:LONGEST] for word in words[2 : MOST + 2])
            case "set" if words[:1] == ("--",):
                self.variables["@"] = tuple(word[:LONGEST] for word in words[1 : MOST + 1])
            case program if program in _DECLARES:
                self._set([word for word in words if _ASSIGNMENT.match(word)])
        said = known_output(command, to_file=True)
        if said is not None:
            for target in command.targets[:1]:
                self.files[target.removeprefix("./")] = said

    def _fields(self, word: ParsedWord, nested: list[Simple], depth: int, *, split: bool = True) -> list[str]:
        """Return the words that this word expands to, as far as they are known."""
        fields: list[list[str]] = [[]]
        for piece in word.pieces:
            values = self._values(piece, nested, depth, split=split)
            for number, value in enumerate(values):
                if number:
                    fields.append([])
                fields[-1].append(value)
        texts = ["".join(field) for field in fields]
        if not split:
            return [" ".join(texts)]
        has_braces = any(piece.kind is PieceKind.PATTERN and piece.text == "{" for piece in word.pieces)
        found = _BRACES.fullmatch(texts[0]) if has_braces and len(texts) == 1 else None
        return [f"{found[1]}{each}{found[3]}" for each in found[2].split(",")[:MOST]] if found else texts

    def _values(self, piece: WordPiece, nested: list[Simple], depth: int, *, split: bool) -> Sequence[str]:
        known: tuple[str, ...] | None = None
        if piece.inner:
            inside = self._line(piece.inner, depth, certain=False)
            nested += inside
            said = _said(inside) if piece.kind is PieceKind.SUBSTITUTION and piece.name in "$`" else None
            known = None if said is None else (said.strip(),)
            if piece.name == "<" and len(inside) == 1:
                self.files[piece.text] = known_output(inside[0]) or ""
        elif piece.kind is PieceKind.VARIABLE:
            known = ("", "") if piece.name == "IFS" and not piece.quoted else self.variables.get(piece.name)
        length = sum(map(len, known or ()))
        if known is None or length > self.budget:
            return (piece.text,)
        self.budget -= length
        if len(known) == 1 and split and not piece.quoted:
            return known[0].split() or ("",)
        return known

    def _redirected(self, command: Simple, parsed: ParsedCommand, nested: list[Simple], depth: int) -> Simple:
        targets: list[str] = []
        reads: list[str] = []
        text = command.input
        for each in parsed.redirections:
            file = "".join(self._fields(each.target, nested, depth, split=False))
            is_copy = "&" in each.operator and (file == "-" or file.removesuffix("-").isdigit())
            if each.operator == "<<<":
                text = file
            elif each.operator in ("<<", "<<-"):
                text = "".join(self._fields(each.body, nested, depth, split=False)) if each.body else ""
            elif ">" in each.operator and file and not is_copy:
                targets.append(file)
            elif "<" in each.operator and file and not is_copy:
                reads.append(file)
                text = self.files.get(file.removeprefix("./"))
        return replace(command, targets=tuple(targets), reads=tuple(reads), input=text)

    def _carried(self, command: Simple, depth: int) -> list[Simple]:
        """Return the commands in the words and in the input of this command."""
        found: list[Simple] = []
        for words in executed(command.program, command.words) if command.program in _FINDERS else ():
            inner = replace(self._simple(words, _Pipe()), scope=command.scope)
            carriers = (*command.carriers, command.program, *inner.carriers)
            inner = replace(inner, carriers=carriers, elevated=command.elevated or inner.elevated)
            found += [inner, *self._carried(inner, depth + 1)] if words and depth <= _DEPTH else []
        for text in self._texts(command):
            found += self._read_inside(command, text, depth + 1)
        return found

    def _texts(self, command: Simple) -> Iterator[str]:
        """Yield the texts that this command runs as a shell does."""
        yield from unwrap(command.argv).texts
        words = command.words
        if command.program in SHELLS:
            script, is_text = shell_script(words)
            if is_text:
                yield script
            elif not script or script in ("-", "/dev/stdin"):
                yield command.input or ""
            else:
                yield self.files.get(script.removeprefix("./"), "")
        elif command.program in SOURCES and words[:1] == ("/dev/stdin",):
            yield command.input or ""
        elif command.program in SOURCES and words:
            yield self.files.get(words[0].removeprefix("./"), "")
        elif command.program in ("eval", "trap"):
            yield " ".join(words) if command.program == "eval" else "".join(words[:1])
        elif command.program == "git":
            yield from _git_texts(words)
        elif command.program == "ssh" and len(command.operands) > 1:
            yield " ".join(words[words.index(command.operands[0]) + 1 :])
        elif command.argv and command.argv[0].startswith("./"):
            yield self.files.get(command.argv[0].removeprefix("./"), "")


def _without_keywords(words: Sequence[ParsedWord], *, is_first: bool) -> list[ParsedWord]:
    """Return the words from the first one that is not reserved. `time` is reserved at the start of a
    pipeline."""
    at, before = 0, "" if is_first else "|"
    while at < len(words) and words[at].is_bare:
        text = words[at].text
        is_option = before == "time" and text in ("-p", "--")
        if not is_option and (not _KEYWORD.fullmatch(text) or (text == "time" and before in ("|", "coproc"))):
            break
        before = "time" if text == "-p" else text
        at += 1
    return list(words[at:])


def _git_texts(words: Sequence[str]) -> Iterator[str]:
    """Yield the commands in the settings passed to a git command."""
    for before, word in pairwise(words):
        setting = _GIT_COMMAND.match(word) if before == "-c" else None
        if setting:
            yield word[setting.end() :].removeprefix("!")


def _given(words: Sequence[str], options: dict[str, str], pipe: _Pipe) -> tuple[tuple[str, ...], bool]:
    """Return the words of a command that xargs runs, and whether some of them are unknown."""
    mark = options.get("I") or ("{}" if "i" in options else "")
    source = pipe.source
    if pipe.text is not None:
        paths: Sequence[str] = pipe.text.split(maxsplit=MOST)[:MOST]
    elif source and source.program in _FINDERS:
        paths = found_paths(source.program, source.words)
    else:
        return tuple(words), True
    return filled(words, mark, paths) if mark else (*words, *paths), False


def _said(commands: Sequence[Simple]) -> str | None:
    """Return the output of a substitution, if it is one command that prints a literal text."""
    return known_output(commands[0]) if len(commands) == 1 else None
