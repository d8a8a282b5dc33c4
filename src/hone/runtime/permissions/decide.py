"""The decisions, as pure functions. docs/permissions.md shows them as a table made from this module."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from hone.core.permissions import Action, Mode, Request
from hone.core.sensitive import is_secret, is_sensitive
from hone.runtime.permissions.rules import Rule, RuleSet, deny_command, exact_rules, match_command, match_path


class Decision(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Ruling(Struct, frozen=True):
    """`reason` is a sentence; `rules` are what an answer for longer would cover."""

    decision: Decision
    reason: str = ""
    rules: tuple[Rule, ...] = ()


ALLOW = Ruling(Decision.ALLOW)
PLANNING = "Plan mode only looks. Say what you would do, and end with the plan."


class PathRules(Struct, frozen=True):
    """The folders that decide about a path: the working folder, Hone's home, and what is open in it. A
    conversation that is `confined` cannot leave its folder at all."""

    folder: Path
    home: Path
    open: tuple[Path, ...] = ()
    confined: bool = False

    def is_inside(self, path: Path) -> bool:
        return path.is_relative_to(self.folder)

    def is_open(self, path: Path, action: Action) -> bool:
        """Tell whether a path lies in a part of Hone's home that tools may read."""
        return action is Action.READ and any(path.is_relative_to(each) for each in self.open)

    def doubt(self, path: Path, action: Action) -> str:
        """Return why the owner should be asked about a path, in a sentence; empty if there is no reason."""
        if action is Action.READ:
            secret = is_secret(path)
            return f"It is a place for secrets: {secret}." if secret else ""
        if not self.is_inside(path):
            return "It lies outside the working folder."
        sensitive = is_sensitive(path.relative_to(self.folder).parts)
        return f"Writing it has consequences: {sensitive}." if sensitive else ""


def judge_file(request: Request, mode: Mode, rules: RuleSet, places: PathRules) -> Ruling:
    path, writes = Path(request.subject), request.action is Action.WRITE
    is_open = places.is_open(path, request.action)
    if places.confined and not places.is_inside(path) and not is_open:
        return Ruling(Decision.DENY, f"Only what lies below {places.folder} can be read and written here.")
    if path.is_relative_to(places.home) and not is_open:
        hint = "Use memory or skill_manage." if writes else "Use memory, skill_view or session_search."
        return Ruling(Decision.DENY, f"Hone's home is closed to file tools. {hint}")
    denied = match_path(rules.deny, request.tool, path, places.folder)
    if denied:
        return Ruling(Decision.DENY, f"A rule denies it: {denied}.")
    if writes and mode is Mode.PLAN:
        return Ruling(Decision.DENY, PLANNING)
    doubt = places.doubt(path, request.action)
    allowed = match_path(_binding(rules.allow, doubt), request.tool, path, places.folder)
    if mode is Mode.FULL or allowed or not (doubt or (writes and mode is Mode.ASK)):
        return ALLOW
    return Ruling(Decision.ASK, doubt, (Rule("write_file" if writes else "read_file", str(path)),))


def _binding(rules: Sequence[Rule], doubt: str) -> Sequence[Rule]:
    """A wildcard never reaches a sensitive or secret place: such a rule must name it."""
    outside = doubt.startswith("It lies outside")
    return [rule for rule in rules if not (doubt and rule.is_wide) or outside] if doubt else rules


def judge_command(request: Request, mode: Mode, rules: RuleSet) -> Ruling:
    """Judge what a command does apart from the network."""
    denied = deny_command(rules.deny, request.tool, request.subject)
    if denied:
        return Ruling(Decision.DENY, f"A rule denies it: {denied}.")
    doubts = " ".join(request.doubts)
    if mode is Mode.PLAN:
        return Ruling(Decision.DENY, f"{PLANNING} {doubts}") if doubts or request.network else ALLOW
    if mode is Mode.FULL or match_command(rules.allow, request.tool, request.subject):
        return ALLOW
    if not doubts and mode is not Mode.ASK:
        return ALLOW
    return Ruling(Decision.ASK, doubts, exact_rules(request.tool, request.subject))
