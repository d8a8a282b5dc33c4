"""The decisions, as pure functions. docs/permissions.md shows them as a table made from this module."""

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from hone.core.permissions import Action, Mode, Request
from hone.core.sensitive import is_secret, is_sensitive
from hone.runtime.permissions.rules import (
    Rule,
    RuleSet,
    deny_command,
    exact_rule,
    exact_rules,
    match_command,
    match_path,
    match_use,
)


class Decision(StrEnum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Ruling(Struct, frozen=True):
    """`reason` is a sentence; `rules` are what a lasting answer would cover; `network`: the question is about
    the network."""

    decision: Decision
    reason: str = ""
    rules: tuple[Rule, ...] = ()
    network: bool = False


ALLOW = Ruling(Decision.ALLOW)
PLANNING = "Plan mode changes nothing. Say what you would do, and end with the plan."


class PathRules(Struct, frozen=True):
    """The folders that decide about a path: the working folder, Hone's home, and the open parts of it. A
    `confined` conversation cannot leave its folder at all."""

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
        guarded = self.guards(path, action)
        if guarded or action is Action.READ or self.is_inside(path):
            return guarded
        return "It is outside the working folder."

    def guards(self, path: Path, action: Action) -> str:
        """Return why only a rule that names this exact path may allow it, in a sentence; else empty."""
        parts = path.relative_to(self.folder).parts if self.is_inside(path) else path.parts[1:]
        sensitive = is_sensitive(parts) if action is Action.WRITE else ""
        if sensitive:
            return f"Writing it has consequences: {sensitive}."
        secret = is_secret(path)
        return f"It is a place for secrets: {secret}." if secret else ""


def judge_file(request: Request, mode: Mode, rules: RuleSet, places: PathRules) -> Ruling:
    path, writes = Path(request.subject), request.action is Action.WRITE
    is_open = places.is_open(path, request.action)
    if places.confined and not places.is_inside(path) and not is_open:
        return Ruling(Decision.DENY, f"You can only read and write below {places.folder} here.")
    if path.is_relative_to(places.home) and not is_open:
        hint = "Use memory or skill_manage." if writes else "Use memory, skill_view or session_search."
        return Ruling(Decision.DENY, f"Hone's home is closed to file tools. {hint}")
    denied = match_path(rules.deny, request.tool, path, places.folder)
    if denied:
        return deny_by(denied)
    if writes and mode is Mode.PLAN:
        return Ruling(Decision.DENY, PLANNING)
    doubt = " ".join(filter(None, (places.doubt(path, request.action), *request.doubts)))
    binding = [each for each in rules.allow if not (each.is_wide and places.guards(path, request.action))]
    allowed = match_path(binding, request.tool, path, places.folder)
    if allowed or mode is Mode.FULL:
        return allow_by(allowed)
    if not doubt and not (writes and mode is Mode.ASK):
        return ALLOW
    lasting = () if request.doubts else _name(path, "write_file" if writes else "read_file")
    return Ruling(Decision.ASK, doubt, lasting)


def _name(path: Path, tool: str) -> tuple[Rule, ...]:
    """Return the rule for this exact path; none if its name would be read as a pattern."""
    return () if Rule(tool, str(path)).is_wide else exact_rule(tool, str(path))


def allow_by(rule: Rule | None) -> Ruling:
    """Allow by a rule, or else by full mode."""
    return Ruling(Decision.ALLOW, f"A rule allows it: {rule}." if rule else "Nothing is asked in this mode.")


def deny_by(rule: Rule) -> Ruling:
    return Ruling(Decision.DENY, f"A rule denies it: {rule}.")


def judge_command(request: Request, mode: Mode, rules: RuleSet) -> Ruling:
    """Judge what a command does apart from the network."""
    denied = deny_command(rules.deny, request.tool, request.subject)
    if denied:
        return deny_by(denied)
    doubts = " ".join(request.doubts)
    if mode is Mode.PLAN:
        outward = "Commands get no network." if request.network else ""
        why = " ".join(filter(None, (PLANNING, doubts, outward)))
        return Ruling(Decision.DENY, why) if doubts or outward else ALLOW
    allowed = match_command(rules.allow, request.tool, request.subject)
    if allowed or mode is Mode.FULL:
        return allow_by(allowed[0] if allowed else None)
    if not doubts and mode is not Mode.ASK:
        return ALLOW
    return Ruling(Decision.ASK, doubts, exact_rules(request.tool, request.subject))


def judge_use(request: Request, mode: Mode, rules: RuleSet) -> Ruling:
    """Judge a call of a tool that declares only that it changes something."""
    about = Rule(request.tool, request.subject)
    denied = match_use(rules.deny, about)
    if denied:
        return deny_by(denied)
    if mode is Mode.PLAN:
        return Ruling(Decision.DENY, PLANNING)
    doubts = " ".join(request.doubts)
    is_free = mode is Mode.FULL or (mode is Mode.AUTO and not doubts)
    if is_free or match_use(rules.allow, about):
        return ALLOW
    return Ruling(Decision.ASK, doubts, (Rule(request.tool, "*"),))
