"""Judge a command by the text that it runs: fetched, decoded, or code in another language."""

from msgspec import Struct

from hone.core.regex import regex
from hone.runtime.commands import SHELLS, SOURCES
from hone.runtime.simple import Simple, shell_script

FETCHED = "runs what it fetches from the network"
UNSEEN = "runs text that cannot be read beforehand"
SCRIPTED = "deletes files from inside a script"
HIDDEN = "runs a command that it does not name, with the options of a deletion"

FETCHERS = frozenset({"curl", "wget", "fetch", "http", "https", "aria2c", "nc", "ncat", "socat"})
_DECODERS = frozenset(
    {"base64", "base32", "basenc", "xxd", "od", "openssl", "uudecode", "rev", "tr", "gpg", "gunzip", "gzip"}
    | {"zcat", "bzcat", "bunzip2", "xzcat", "unxz", "zstdcat"}
)
_READERS = frozenset({"cat", "head", "tail"})
_CODE = {
    # program: the options that take code
    "python": ("c",),
    "python2": ("c",),
    "python3": ("c",),
    "pypy3": ("c",),
    "perl": ("e", "E"),
    "ruby": ("e",),
    "node": ("e", "p", "--eval", "--print"),
    "deno": ("--eval",),
    "php": ("r",),
    "lua": ("e",),
}
_LIBRARY = regex(r"perl -[MIm]|ruby -[rI]")
_MODULE = regex(r"(python|pypy)\S* -\w?m")
_AWKS = frozenset({"awk", "gawk", "mawk", "nawk"})


def judge_source(command: Simple) -> str:
    """Return what is dangerous about the source of the text that this command runs."""
    program = command.program
    if program in SHELLS:
        script, is_text = shell_script(command.words)
        is_given = any(each in script for each in command.substitutions)
        reads = not is_text and (not script or script in ("-", "/dev/stdin"))
    elif program in SOURCES or program == "eval":
        is_given, reads = True, command.words[:1] == ("/dev/stdin",)
    elif program in _CODE:
        code, reads = _code(command)
        is_given = any(each in (code or "") for each in command.substitutions)
    else:
        return ""
    sources = {*(command.inlined if is_given else ()), *(command.piped if reads else ())}
    if FETCHERS & sources:
        return FETCHED
    is_unknown = program in SHELLS and reads and command.input is None and not {*command.piped} <= _READERS
    return UNSEEN if is_unknown or _DECODERS & sources else ""


def downloads(command: Simple) -> frozenset[str]:
    """Return the files that this command writes from the network."""
    if command.program not in FETCHERS and FETCHERS.isdisjoint(command.piped):
        return frozenset()
    named = [*command.values("o", "--output"), *command.values("O", "--output-document")]
    keeps_name = command.program == "wget" or "O" in command.flags or "--remote-name" in command.flags
    kept = [word.rpartition("/")[2] for word in command.words if keeps_name and "://" in word]
    teed = command.operands if command.program == "tee" else ()
    return frozenset(each.removeprefix("./") for each in (*named, *kept, *teed, *command.targets) if each)


def runs(command: Simple) -> str:
    """Return the file that this command runs as a script."""
    if command.program in SHELLS:
        script, is_text = shell_script(command.words)
        return "" if is_text else script.removeprefix("./")
    if command.program in SOURCES or command.program in _CODE:
        return next(iter(command.operands), "").removeprefix("./")
    return command.argv[0].removeprefix("./") if command.argv and "/" in command.argv[0] else ""


class CodeFindings(Struct, frozen=True):
    """What a piece of code does to files and commands, as far as its string literals show."""

    deletes: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    strings: tuple[str, ...] = ()
    reason: str = ""


_DELETES = regex(
    r"(?:shutil\.rmtree|os\.(?:remove|unlink|rmdir|removedirs)|FileUtils\.(?:rm|remove)\w{0,20}"
    r"|File\.(?:delete|unlink)|Dir\.(?:delete|rmdir|unlink)|\b(?:rm|rmdir|unlink)(?:Sync)?(?=\()"
    r"|(?<![\w$/|'\"-])(?:unlink|rmtree|rmdir)\b(?![/|]))"
    r"([^;\n]{0,300})"
)
_PATH_METHODS = regex(r"Path\(([^()\n]{0,200})\)\s{0,9}\.(unlink|rmdir|write_text|write_bytes)\(")
_OPENS = regex(
    r"open\(\s{0,9}([rbf]{0,2}['\"][^'\"\n]{0,300}['\"])\s{0,9},\s{0,9}(?:mode=)?['\"][waxr]?b?[wax+]"
)
_RUNS = regex(
    r"(?:\bos\.(?:system|popen|exec\w{0,4}|spawn\w{0,4})|\bsubprocess\.\w{1,20}"
    r"|\b(?:system|exec|execSync|spawnSync|spawn|popen|shell_exec|passthru|qx)\b)([^;\n]{0,400})"
)
_STRINGS = regex(r"'([^'\n]{0,200})'|\"([^\"\n]{0,200})\"")
_TICKS = regex(r"`([^`\n]{1,400})`|\bqx\{([^}\n]{1,400})\}|\bqx\(([^)\n]{1,400})\)")
_DECODES = regex(r"b64decode|fromhex|unhexlify|\batob\b|decode64|base64_decode|pack\s{0,3}\(?['\"]H|rot_?13")
_EVALUATES = regex(r"\b(?:exec|eval|system|popen|subprocess|compile)\b")
_COMPUTED = regex(r"environ|ENV|expanduser|home\(|argv|glob|\+|\bf['\"]|\$|join\(|<\*")


def code_of(command: Simple) -> str:
    """Return the code in another language that this command runs, as far as the line contains it."""
    if command.program in _AWKS:
        return next(iter(command.operands), "")
    if command.program not in _CODE:
        return ""
    code, reads = _code(command)
    return code or (command.input or "" if reads else "")


def read_code(code: str) -> CodeFindings:
    deletes: list[str] = []
    writes = [_string(found[1]) for found in _OPENS.finditer(code)]
    reason = UNSEEN if _DECODES.search(code) and _EVALUATES.search(code) else ""
    for found in _DELETES.finditer(code):
        literals = _strings(found[1])
        deletes += literals
        if not literals or _COMPUTED.search(found[1]):
            reason = reason or SCRIPTED
    for found in _PATH_METHODS.finditer(code):
        (deletes if found[2] in ("unlink", "rmdir") else writes).extend(_strings(found[1]))
    commands = [" ".join(_strings(found[1])) for found in _RUNS.finditer(code)]
    commands += [next(filter(None, found.groups())) for found in _TICKS.finditer(code)]
    return CodeFindings(tuple(deletes), tuple(writes), tuple(commands), tuple(_strings(code)), reason)


def _code(command: Simple) -> tuple[str | None, bool]:
    """Return the code passed in an option, and whether the program reads code from its input."""
    letters = [each for each in _CODE[command.program] if len(each) == 1]
    for word, after in zip(command.words, (*command.words[1:], ""), strict=False):
        name, sign, value = word.partition("=")
        if not word.startswith("-") or _MODULE.match(f"{command.program} {word}"):
            return None, False
        if name.startswith("--"):
            if name in _CODE[command.program]:
                return (value if sign else after), False
        elif not _LIBRARY.match(f"{command.program} {word}"):
            for letter in letters:
                if letter in word[1:]:
                    return word[1:].partition(letter)[2] or after, False
    return None, True


def _strings(text: str) -> list[str]:
    return [found[1] if found[1] is not None else found[2] for found in _STRINGS.finditer(text)]


def _string(literal: str) -> str:
    return "".join(_strings(literal)[:1])


def is_hidden(command: Simple) -> bool:
    """Tell whether an unnamed program gets the options of `rm -rf`."""
    program, flags = command.program, command.flags
    unnamed = any(mark in program for mark in "$`*?[") and program not in ("[", "[[")
    return unnamed and bool(flags & {"r", "R", "--recursive"}) and bool(flags & {"f", "--force"})
