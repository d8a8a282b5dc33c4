"""Allow and deny rules: `tool: pattern`, such as `write_file: src/**` or `terminal: git status`.

A path pattern starts at the working folder, at `~` or at `/`. A command pattern matches one simple command
word by word; a last word `*` stands for any further words. A host pattern may begin with `*.`. A pattern `*`
covers everything.
"""

import os
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from msgspec import Struct

from hone.core import seldom
from hone.core.errors import Refused
from hone.core.loading import import_object

if TYPE_CHECKING:
    from hone.runtime.simple import Simple

PARSER = "hone.runtime.commands:simple_commands"
"""Imported with the first command."""
FAMILIES = {"patch": "write_file", "search_files": "read_file", "web_search": "web_fetch"}
"""A rule for the second tool covers the first one, too."""
NETWORK = "network"
"""The tool of a rule that lets a command use the network."""


def parse_commands(text: str) -> "Iterable[Simple]":
    """Return the simple commands that a command line runs."""
    found: Iterable[Simple] = import_object(PARSER)(text)
    return found


PATHS = ("read_file", "search_files", "write_file", "patch")
"""Tools whose patterns are paths."""


class Rule(Struct, frozen=True, order=True):
    tool: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.pattern}"

    @property
    def is_wide(self) -> bool:
        """Tell whether a path pattern covers more than the path it names."""
        return "*" in self.pattern or "?" in self.pattern or self.pattern.endswith("/")

    def names(self, tool: str) -> bool:
        return self.tool in (tool, FAMILIES.get(tool, tool), "*")


class RuleSet(Struct, frozen=True):
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    def __or__(self, other: "RuleSet") -> "RuleSet":
        return RuleSet((*self.allow, *other.allow), (*self.deny, *other.deny))


def parse_rule(text: str) -> Rule:
    """Parse a rule. Raises Refused if it is invalid."""
    tool, colon, pattern = text.partition(":")
    if not colon or not re.fullmatch(r"[A-Za-z0-9_-]+|\*", tool.strip()) or not pattern.strip():
        raise Refused(f"{text!r} is not a rule. Write it as `tool: pattern`, e.g. `terminal: git push *`.")
    return Rule(tool.strip(), pattern.strip())


def parse_rules(allow: Iterable[str], deny: Iterable[str]) -> RuleSet:
    return RuleSet(tuple(map(parse_rule, allow)), tuple(map(parse_rule, deny)))


def match_path(rules: Iterable[Rule], tool: str, path: Path, folder: Path) -> Rule | None:
    """Return the first rule that covers this real path."""
    return next((rule for rule in rules if rule.names(tool) and _covers(rule.pattern, path, folder)), None)


def _covers(pattern: str, path: Path, folder: Path) -> bool:
    if pattern == "*":
        return True
    whole = os.path.join(folder, os.path.expanduser(pattern))
    if pattern.endswith("/"):
        whole += "**"
    return _glob(os.path.normpath(whole)).fullmatch(str(path)) is not None


@cache
def _glob(pattern: str) -> re.Pattern[str]:
    """Match a path. `*` and `?` stay within a folder; `**` crosses folders, and `x/**` covers x itself."""
    parts = re.split(r"(/\*\*(?:/|$)|\*+|\?)", pattern)
    said = {"/**": "(?:/.*)?", "/**/": "/(?:.*/)?", "*": "[^/]*", "?": "[^/]"}
    texts = (said.get(part, "[^/]*" if part.startswith("*") else re.escape(part)) for part in parts)
    return re.compile("".join(texts), re.DOTALL)


def match_command(rules: Sequence[Rule], tool: str, text: str) -> tuple[Rule, ...]:
    """Return the rules that together cover a command; none if a part of it is not covered.

    A rule that equals the text covers all of it. Otherwise every simple command of the text must be plain,
    without redirection, substitution or variable, and covered by a rule.
    """
    named = [rule for rule in rules if rule.names(tool)]
    exact = next((rule for rule in named if rule.pattern == text.strip()), None)
    if exact:
        return (exact,)
    found: list[Rule] = []
    for command in parse_commands(text):
        forms = (command.argv,) if command.plain else ()
        rule = next((rule for rule in named if _fits(rule.pattern, forms)), None)
        if rule is None:
            return ()
        found.append(rule)
    return tuple(dict.fromkeys(found))


def deny_command(rules: Iterable[Rule], tool: str, text: str) -> Rule | None:
    """Return the first rule that covers any part of a command, plain or not."""
    named = [rule for rule in rules if rule.names(tool)]
    commands = [*parse_commands(text)]
    return next(
        (
            rule
            for rule in named
            if rule.pattern in ("*", text.strip())
            or any(_fits(rule.pattern, _forms(each)) for each in commands)
        ),
        None,
    )


def _forms(command: "Simple") -> tuple[tuple[str, ...], ...]:
    """Return a command as written, and without its path and its prefixes."""
    return command.argv, (command.program, *command.words)


def _fits(pattern: str, forms: Sequence[tuple[str, ...]]) -> bool:
    """Compare word by word. The only wildcard is a separate, unquoted asterisk at the end."""
    if pattern == "*" or pattern.endswith(" *"):
        wanted = _words(pattern.removesuffix("*"))
        return any(form[: len(wanted)] == wanted for form in forms)
    return _words(pattern) in forms


def _words(text: str) -> tuple[str, ...]:
    try:
        return tuple(seldom.shlex.split(text))
    except ValueError:
        return tuple(text.split())


def is_about_paths(rule: Rule) -> bool:
    return any(rule.names(tool) for tool in PATHS)


def exact_rules(tool: str, text: str) -> tuple[Rule, ...]:
    """Return the rules that the answer "always" adds: each simple command, or else the exact text. Return
    None if no rule would cover this text and nothing else."""
    commands = [*parse_commands(text)]
    if commands and all(each.plain for each in commands):
        lines = dict.fromkeys(seldom.shlex.join(each.argv) for each in commands)
        found = [rule for line in lines for rule in exact_rule(tool, line)]
        return tuple(found) if len(found) == len(lines) else ()
    whole = text.strip()
    is_wide = whole == "*" or whole.endswith(" *")
    return () if is_wide else exact_rule(tool, whole)


def exact_rule(tool: str, subject: str) -> tuple[Rule, ...]:
    """Return a rule that names this one subject; none if it could also mean something else."""
    rule = Rule(tool, subject)
    try:
        reads_back = subject.isprintable() and parse_rule(str(rule)) == rule
    except Refused:
        reads_back = False
    return (rule,) if reads_back else ()


def match_use(rules: Iterable[Rule], use: Rule) -> Rule | None:
    """Return the first rule that covers a use of a tool: the exact one, or any."""
    return next((each for each in rules if each.names(use.tool) and each.pattern in ("*", use.pattern)), None)


def match_host(rules: Iterable[Rule], host: str) -> Rule | None:
    return next((rule for rule in rules if rule.names("web_fetch") and _is_host(rule.pattern, host)), None)


def _is_host(pattern: str, host: str) -> bool:
    wanted = (urlsplit(pattern).hostname or "") if "://" in pattern else pattern.lower().rstrip(".")
    if wanted.startswith("*."):
        return host == wanted[2:] or host.endswith(wanted[1:])
    return wanted in (host, "*")


def host_of(url: str) -> str:
    """Return the host of a URL; empty if there is none."""
    try:
        return (urlsplit(url).hostname or "").rstrip(".")
    except ValueError:
        return ""
