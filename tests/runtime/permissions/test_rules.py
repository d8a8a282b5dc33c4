"""L1: rules are read exactly, a denial always wins, and no wildcard reaches what must be named."""

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.permissions import Action, Mode, Request
from hone.runtime.permissions.decide import Decision, PathRules, judge_command, judge_file, judge_use
from hone.runtime.permissions.project import RuleTexts
from hone.runtime.permissions.rules import (
    Rule,
    RuleSet,
    deny_command,
    exact_rules,
    match_command,
    match_host,
    match_path,
    parse_rule,
    parse_rules,
)
from tests.runtime.permissions.places import MORE_PROJECT, OWN_SECRETS, PROJECT

FOLDER = Path("/work/project")
PLACES = PathRules(FOLDER, Path("/home/me/.hone"))
PARTS = st.sampled_from(["src", "docs", "a b", ".git", "hooks", ".env", "x.py", "é", "*"])
PATHS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: FOLDER.joinpath(*parts))
PATTERNS = st.sampled_from(
    ["*", "**", "/**", "src/**", "src/*.py", "./**", "?rc", ".git/**", ".git/", "~/**"]
)
MODES = st.sampled_from(Mode)
SIMPLE = st.sampled_from(["git status", "ls", "make test", "npm ci", "rm -rf x", "cat 'a b'", "echo hi"])
JOINTS = st.sampled_from([" && ", "; ", " | ", " || ", "\n", " & "])
GUARDED = st.sampled_from([*PROJECT, *MORE_PROJECT, *OWN_SECRETS])


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("write_file: src/**", Rule("write_file", "src/**")),
        ("  terminal:git status ", Rule("terminal", "git status")),
        ("web_fetch: https://a.example:8/x", Rule("web_fetch", "https://a.example:8/x")),
        ("*: *", Rule("*", "*")),
    ],
)
def test_a_rule_is_a_tool_and_a_pattern(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule
    assert parse_rule(str(rule)) == rule


@pytest.mark.parametrize("text", ["", "terminal", "terminal:", ": x", "a b: x", "terminal git status", "*"])
def test_what_is_no_rule_says_how_to_write_one(text: str) -> None:
    with pytest.raises(Refused, match="Write it as `tool: pattern`"):
        parse_rule(text)


@pytest.mark.parametrize(
    ("pattern", "path", "covered"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", True),
        ("src/**", "srcs/a", False),
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/a/b.py", False),
        ("src/", "src/a/b.py", True),
        ("**/x.py", "a/b/x.py", True),
        ("a?.txt", "ab.txt", True),
        ("a?.txt", "a/.txt", False),
        ("src/../docs/a", "docs/a", True),
        ("a.b", "axb", False),
        ("[ab]", "a", False),
        ("*", "any/where", True),
    ],
)
def test_a_path_pattern_means_what_it_says(pattern: str, path: str, covered: bool) -> None:
    found = match_path([Rule("write_file", pattern)], "write_file", FOLDER / path, FOLDER)
    assert (found is not None) is covered


def test_a_rule_holds_for_the_tools_of_its_family() -> None:
    rule = Rule("write_file", "a")
    assert match_path([rule], "patch", FOLDER / "a", FOLDER) == rule
    assert match_path([rule], "read_file", FOLDER / "a", FOLDER) is None
    assert match_path([Rule("patch", "a")], "write_file", FOLDER / "a", FOLDER) is None
    assert match_path([Rule("*", "a")], "read_file", FOLDER / "a", FOLDER) is not None


@given(GUARDED, PATTERNS, st.sampled_from([Action.READ, Action.WRITE]), MODES)
def test_a_wildcard_never_reaches_a_guarded_place(
    name: str, pattern: str, action: Action, mode: Mode
) -> None:
    path = FOLDER / name
    request = Request("read_file" if action is Action.READ else "write_file", action, str(path))
    without = judge_file(request, mode, RuleSet(), PLACES)
    assume(PLACES.guards(path, action))
    rules = RuleSet((Rule(request.tool, pattern), Rule(request.tool, f"{path.parent}/*"), Rule("*", "*")))
    assert judge_file(request, mode, rules, PLACES) == without
    named = RuleSet((Rule(request.tool, str(path)),))
    expected = Decision.DENY if mode is Mode.PLAN and action is Action.WRITE else Decision.ALLOW
    assert judge_file(request, mode, named, PLACES).decision is expected


@given(st.sampled_from([".bashrc", ".ssh/authorized_keys", ".config/systemd/user/x.service", ".netrc"]))
def test_a_wildcard_outside_the_folder_never_reaches_a_guarded_place(name: str) -> None:
    rules = RuleSet((Rule("write_file", "/home/me/**"), Rule("write_file", "/**")))
    guarded = Request("write_file", Action.WRITE, f"/home/me/{name}")
    assert judge_file(guarded, Mode.AUTO, rules, PLACES).decision is Decision.ASK
    ordinary = Request("write_file", Action.WRITE, "/home/me/notes.txt")
    assert judge_file(ordinary, Mode.AUTO, rules, PLACES).decision is Decision.ALLOW


@given(PATHS, PATTERNS, PATTERNS, MODES, st.sampled_from([Action.READ, Action.WRITE]))
def test_a_denied_path_is_denied_whatever_is_allowed(
    path: Path, allow: str, deny: str, mode: Mode, action: Action
) -> None:
    tool = "read_file" if action is Action.READ else "write_file"
    denied = RuleSet((Rule(tool, allow), Rule(tool, str(path)), Rule("*", "*")), (Rule(tool, deny),))
    assume(match_path(denied.deny, tool, path, FOLDER))
    assert judge_file(Request(tool, action, str(path)), mode, denied, PLACES).decision is Decision.DENY


@given(st.lists(SIMPLE, min_size=1, max_size=4), JOINTS, st.data(), MODES)
def test_a_compound_line_needs_a_rule_for_every_part_and_one_denial_is_enough(
    parts: list[str], joint: str, data: st.DataObject, mode: Mode
) -> None:
    line = joint.join(parts)
    rules = [Rule("terminal", part) for part in dict.fromkeys(parts)]
    left_out = data.draw(st.sampled_from(rules))
    assert {*match_command(rules, "terminal", line)} == {*rules}
    assert match_command([rule for rule in rules if rule != left_out], "terminal", line) == ()
    request = Request("terminal", Action.RUN, line)
    denied = RuleSet((*rules, Rule("terminal", "*")), (left_out,))
    assert judge_command(request, mode, denied).decision is Decision.DENY
    assert deny_command([left_out], "terminal", line) == left_out


@pytest.mark.parametrize(
    "line",
    [
        "git status > ~/.bashrc",
        "git status < /etc/passwd",
        "git status; $x",
        "git status $(rm -rf x)",
        "git status `rm -rf x`",
        "PATH=./evil git status",
        "PATH=./evil; git status",
        "./git status",
        "/tmp/git status",
        "sudo git status",
        "env X=1 git status",
        "xargs git status",
        "timeout 5 git status",
        "git status & evil",
        "git status\nevil",
        "git() { evil; }; git status",
        "alias git=evil; git status",
        "git status # it's\nevil # it's",
        "eval git status",
        "bash -c 'git status'",
        "git status --output=x",
        "Git status",
    ],
)
def test_a_rule_for_one_command_covers_no_other_line(line: str) -> None:
    assert match_command([Rule("terminal", "git status")], "terminal", line) == ()


@pytest.mark.parametrize("line", ["/usr/bin/git push", "sudo git push", "x=1 git push > y", "a; git push &"])
def test_a_denied_command_is_found_behind_what_stands_before_it(line: str) -> None:
    assert deny_command([Rule("terminal", "git push *")], "terminal", line)


@given(st.lists(SIMPLE, min_size=1, max_size=3), JOINTS)
def test_an_answer_for_always_covers_the_same_line_again(parts: list[str], joint: str) -> None:
    line = joint.join(parts)
    assert match_command(exact_rules("terminal", line), "terminal", line)


@given(st.text(max_size=40))
def test_an_answer_for_always_covers_this_text_or_there_is_none(text: str) -> None:
    rules = exact_rules("terminal", text)
    assert not rules or match_command(rules, "terminal", text)
    assert all(parse_rule(str(rule)) == rule and "\n" not in str(rule) for rule in rules)


@pytest.mark.parametrize("text", ["rm -rf build *", "*", "ls *", "rm 'a\nb'"])
def test_what_would_be_read_as_a_wildcard_or_as_two_rules_is_not_offered(text: str) -> None:
    assert exact_rules("terminal", text) == ()
    odd = Request("write_file", Action.WRITE, f"/elsewhere/{text}")
    assert judge_file(odd, Mode.AUTO, RuleSet(), PLACES).rules == ()


@pytest.mark.parametrize(
    ("pattern", "host", "covered"),
    [
        ("docs.python.org", "docs.python.org", True),
        ("docs.python.org", "python.org", False),
        ("Docs.Python.Org.", "docs.python.org", True),
        ("*.python.org", "docs.python.org", True),
        ("*.python.org", "python.org", True),
        ("*.python.org", "evilpython.org", False),
        ("https://docs.python.org/3", "docs.python.org", True),
        ("python.org", "docs.python.org.evil.example", False),
        ("*", "any.example", True),
    ],
)
def test_a_host_pattern_means_what_it_says(pattern: str, host: str, covered: bool) -> None:
    assert (match_host([Rule("web_fetch", pattern)], host) is not None) is covered


@given(MODES, st.lists(st.sampled_from(["terminal: *", "write_file: *", "web_fetch: *"]), min_size=1))
def test_a_repositorys_own_file_can_only_deny(mode: Mode, allowed: list[str]) -> None:
    texts = RuleTexts(allow=tuple(allowed), deny=("terminal: make deploy",))
    found = texts.parse()
    unapproved = RuleSet((), found.deny)
    for request, judged in (
        (Request("terminal", Action.RUN, "make deploy"), judge_command),
        (Request("terminal", Action.RUN, "make test"), judge_command),
        (Request("launch", Action.USE, "{}"), judge_use),
    ):
        free = judged(request, mode, RuleSet())
        bound = judged(request, mode, unapproved)
        assert bound == free or bound.decision is Decision.DENY


@pytest.mark.parametrize(
    ("mode", "rules", "decision"),
    [
        (Mode.PLAN, RuleSet(), Decision.DENY),
        (Mode.PLAN, parse_rules(["launch: *"], []), Decision.DENY),
        (Mode.ASK, RuleSet(), Decision.ASK),
        (Mode.ASK, parse_rules(["launch: *"], []), Decision.ALLOW),
        (Mode.AUTO, RuleSet(), Decision.ALLOW),
        (Mode.FULL, parse_rules([], ["launch: *"]), Decision.DENY),
        (Mode.AUTO, parse_rules([], ['launch: {"to":"moon"}']), Decision.DENY),
        (Mode.AUTO, parse_rules([], ['launch: {"to":"mars"}']), Decision.ALLOW),
    ],
)
def test_a_plugins_tool_that_changes_something_follows_modes_and_rules(
    mode: Mode, rules: RuleSet, decision: Decision
) -> None:
    assert judge_use(Request("launch", Action.USE, '{"to":"moon"}'), mode, rules).decision is decision
