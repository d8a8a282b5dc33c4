"""Programs that run another program: where that program's words begin, and what they add to them."""

from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct

from hone.core.regex import regex

ELEVATORS = frozenset({"sudo", "doas", "run0"})
MOST = 64
"""The most words that one program may add to another's."""
LONGEST = 500
"""The most characters of a value that is inserted into other words."""

_TAKES: dict[str, tuple[str, int]] = {
    # name: letters of the options that take a value, and how many words come before the command
    "env": ("uCS", 0),
    "nohup": ("", 0),
    "nice": ("n", 0),
    "ionice": ("cnpPu", 0),
    "chrt": ("TPD", 1),
    "taskset": ("", 1),
    "command": ("", 0),
    "builtin": ("", 0),
    "exec": ("a", 0),
    "time": ("fo", 0),
    "stdbuf": ("ioe", 0),
    "unbuffer": ("", 0),
    "setsid": ("", 0),
    "setarch": ("", 1),
    "linux64": ("", 0),
    "linux32": ("", 0),
    "xargs": ("nIPdLasE", 0),
    "parallel": ("jNIaSnL", 0),
    "timeout": ("sk", 1),
    "flock": ("wE", 1),
    "strace": ("oeEpsuIPaOSXb", 0),
    "ltrace": ("oeEpsuanl", 0),
    "busybox": ("", 0),
    "toybox": ("", 0),
    "sudo": ("ugCDhpRrtTU", 0),
    "doas": ("uC", 0),
    "run0": ("uD", 0),
}
_LONG = regex(
    r"--(?:signal|kill-after|user|group|chdir|unset|adjustment|max-(?:args|procs|lines)|delimiter|arg-file|input"
    r"|output|error|class|classdata|jobs|host|prompt|format|close-from|split-string)"
)
_ASSIGNMENT = regex(r"[A-Za-z_]\w*\+?=")


class Unwrapped(Struct, frozen=True):
    """A command without its carriers. `carriers` are their names, `options` the values of the last one's
    options by letter; `texts` are further command lines among them."""

    words: tuple[str, ...]
    carriers: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    texts: tuple[str, ...] = ()


def unwrap(words: Sequence[str]) -> Unwrapped:
    """Remove what precedes the program that does the work. A carrier without a command stays."""
    carriers: list[str] = []
    options: list[tuple[str, str]] = []
    texts: list[str] = []
    at = 0
    while at < len(words):
        name = base(words[at])
        if name not in _TAKES:
            break
        taken, end = _options(words, at + 1, _TAKES[name][0])
        after = end + _TAKES[name][1]
        if name == "env" or name in ELEVATORS:
            after = _skip_assignments(words, after)
        texts += [value for letter, value in taken if letter == "S" and name == "env"]
        is_lookup = name == "command" and any(letter in "vV" for letter, _ in taken)
        if after >= len(words) or is_lookup:
            break
        carriers.append(name)
        options = taken
        at = after
    return Unwrapped(tuple(words[at:]), tuple(carriers), tuple(options), tuple(texts))


def base(word: str) -> str:
    return word.rpartition("/")[2]


def _options(words: Sequence[str], at: int, valued: str) -> tuple[list[tuple[str, str]], int]:
    """Return the options from here on, each with its value, and where they end."""
    found: list[tuple[str, str]] = []
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        word = words[at]
        at += 1
        if word == "--":
            break
        if word.startswith("--"):
            name, _, value = word.partition("=")
            separate = _LONG.fullmatch(name) is not None and "=" not in word and at < len(words)
            found.append(("S" if name == "--split-string" else name, words[at] if separate else value))
            at += separate
            continue
        letters = word[1:]
        first = next((index for index, letter in enumerate(letters) if letter in valued), len(letters))
        found += [(letter, "") for letter in letters[:first]]
        if first < len(letters):
            value = letters[first + 1 :]
            separate = not value and at < len(words)
            found.append((letters[first], words[at] if separate else value))
            at += separate
    return found, at


def _skip_assignments(words: Sequence[str], at: int) -> int:
    while at < len(words) and _ASSIGNMENT.match(words[at]):
        at += 1
    return at


_TESTS = (
    "-name",
    "-iname",
    "-path",
    "-ipath",
    "-wholename",
    "-regex",
    "-iregex",
    "-newer",
    "-samefile",
    "-inum",
)
_ANYTHING = frozenset({"*", "**", "*.*", ".*", "./*", "?*", "*?"})
_EXECUTES = frozenset({"-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"})


def found_paths(program: str, words: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that `find` or `fd` names: where it looks, with {} below unless it matches
    everything."""
    if program in {"fd", "fdfind"}:
        own = takewhile(lambda word: word not in _EXECUTES, words)
        operands = [word for word in own if not word.startswith("-")]
        return tuple(f"{start}/{{}}" if operands else start for start in operands[1:] or ["."])
    starts: list[str] = []
    for word in words:
        if word in {"-H", "-L", "-P"}:
            continue
        if word.startswith(("-", "(", "!")):
            break
        starts.append(word)
    narrowed = "-empty" in words or any(_narrows(words, at) for at in range(len(words) - 1))
    return tuple(f"{start.rstrip('/')}/{{}}" if narrowed else start for start in starts[:MOST] or ["."])


def _narrows(words: Sequence[str], at: int) -> bool:
    """Tell whether the test at this position selects only some of the files."""
    negated = at > 0 and words[at - 1] in {"!", "-not"}
    return words[at].startswith(_TESTS) and words[at + 1] not in _ANYTHING and not negated


def executed(program: str, words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the commands that `find` or `fd` runs for its matches, with the paths in place of {}."""
    paths = found_paths(program, words)
    at = 0
    while at < len(words):
        at += 1
        if words[at - 1] not in _EXECUTES:
            continue
        start = at
        while at < len(words) and words[at] not in {";", "+"} and words[at] not in _EXECUTES:
            at += 1
        command = [*words[start:at]]
        if program != "find" and not any("{}" in word for word in command):
            command.append("{}")
        yield filled(command, "{}", paths)


def filled(command: Sequence[str], mark: str, paths: Sequence[str]) -> tuple[str, ...]:
    """Return the command with the paths in place of the mark. Inside a word, the mark becomes the first
    path."""
    found: list[str] = []
    left = MOST
    for word in command:
        if word == mark and left > 0:
            found += paths[:left]
            left -= len(paths)
        elif mark in word and mark and paths and left > 0:
            found.append(word.replace(mark, paths[0][:LONGEST], 4))
            left -= 1
        else:
            found.append(word)
    return tuple(found)
