"""L1, L7: rules are listed with their source, changed by command, and tried out before they matter."""

import json
from pathlib import Path

import pytest

from tests.cli.owner import Owner

RULES = 'allow = ["terminal: make test"]\ndeny = ["write_file: migrations/**"]\n'


@pytest.fixture
def owner(
    home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Owner:
    owner = Owner(home, capsys, monkeypatch)
    owner.move(tmp_path)
    return owner


def listed(owner: Owner) -> set[tuple[str, str, str, bool]]:
    found = json.loads(owner.does("permissions", "--json"))["rules"]
    return {(each["kind"], each["rule"], each["source"], each["counts"]) for each in found}


def test_rules_are_added_listed_and_removed(owner: Owner, tmp_path: Path) -> None:
    assert "There are no rules yet." in owner.does("permissions")
    said = owner.does("permissions", "allow", "terminal:make test")
    assert said == (
        "Allowed in this folder: terminal: make test. "
        'Undo it with: hone permissions remove "terminal: make test"\n'
    )
    owner.does("permissions", "deny", "web_fetch: *.example", "--everywhere")
    (owner.home / "hone.toml").write_text('mode = "ask"\n[permissions]\nallow = ["write_file: docs/**"]\n')
    assert listed(owner) == {
        ("allow", "write_file: docs/**", "hone.toml", True),
        ("deny", "web_fetch: *.example", "everywhere", True),
        ("allow", "terminal: make test", "this folder", True),
    }
    shown = owner.does("permissions")
    assert f"Folder:  {tmp_path}\n" in shown
    assert "Mode:    ask: asks before each write and each command\n" in shown
    (tmp_path / "sub").mkdir()
    owner.move(tmp_path / "sub")
    assert ("allow", "terminal: make test", "this folder", True) not in listed(owner)
    owner.move(tmp_path)
    owner.does("permissions", "remove", "terminal: make test")
    owner.does("permissions", "remove", "--everywhere", "web_fetch: *.example")
    assert len(listed(owner)) == 1
    assert "There is no such rule in this folder" in owner.fails(
        "permissions", "remove", "terminal: make test"
    )
    assert "are changed in those files" in owner.fails("permissions", "remove", "write_file: docs/**")
    assert "'make test' is not a rule." in owner.fails("permissions", "allow", "make test")


def test_a_projects_rules_are_shown_approved_and_withdrawn_with_trust(owner: Owner, tmp_path: Path) -> None:
    (tmp_path / ".hone").mkdir()
    file = tmp_path / ".hone" / "permissions.toml"
    file.write_text(RULES)
    allowed = ("allow", "terminal: make test", ".hone/permissions.toml")
    assert (*allowed, False) in listed(owner)
    assert ("deny", "write_file: migrations/**", ".hone/permissions.toml", True) in listed(owner)
    assert "Rules that are not approved do not count." in owner.does("permissions")
    alone = owner("trust")
    assert (alone.code, '  │ allow = ["terminal: make test"]' in alone.out) == (2, True)
    assert (*allowed, False) in listed(owner)
    trusted = owner.does("trust", "--yes")
    assert "is trusted now, and the rules in .hone/permissions.toml count." in trusted
    assert (*allowed, True) in listed(owner)
    file.write_text(f"{RULES}# more\n")
    assert (*allowed, False) in listed(owner)
    owner.does("trust", "--yes")
    owner.does("trust", "--forget")
    assert (*allowed, False) in listed(owner)
    file.write_text("deny = [")
    assert ".hone/permissions.toml cannot be used" in owner.fails("permissions")
    assert ".hone/permissions.toml cannot be used" in owner.does("trust", "--yes")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["write_file", "a.txt"], "auto mode: allowed. Hone does not need to ask.\n"),
        (["write_file", ".git/hooks/x"], "auto mode: asks you. Writing it has consequences: git runs it.\n"),
        (["patch", "/elsewhere/x"], "auto mode: asks you. It is outside the working folder.\n"),
        (["read_file", "x/.env"], "auto mode: asks you. It is a place for secrets: it holds keys.\n"),
        (["terminal", "make test"], "auto mode: allowed. A rule allows it: terminal: make test.\n"),
        (["terminal", "--mode", "ask", "ls"], "ask mode: asks you."),
        (["terminal", "git push --force"], "auto mode: asks you. It rewrites or deletes what was pushed.\n"),
        (["terminal", "git clean -fdx"], "auto mode: refused. A rule denies it: terminal: git clean *.\n"),
        (["web_fetch", "https://a.example/x"], "auto mode: asks you. It goes to a.example.\n"),
        (["terminal", "--network", "npm ci"], "auto mode: asks you. It wants the network.\n"),
        (["write_file", "--mode", "plan", "a.txt"], "plan mode: refused. Plan mode changes nothing."),
        (["write_file", "--mode", "full", "/x/y"], "full mode: allowed. Nothing is asked in this mode.\n"),
        (["launch", "--mode", "ask", "{}"], "ask mode: asks you."),
    ],
)
def test_what_would_happen_is_told_with_its_reason(owner: Owner, arguments: list[str], said: str) -> None:
    owner.does("permissions", "allow", "terminal: make test")
    owner.does("permissions", "deny", "terminal: git clean *")
    told = owner.does("permissions", "test", *arguments)
    assert told.startswith(said)
    asks = "asks you" in said
    assert ("Where nobody can be asked: refused.\n" in told) is asks
    assert ("To allow it for good: hone permissions allow" in told) is asks


def test_a_path_that_cannot_be_looked_up_is_a_sentence(owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = owner.fails("permissions", "test", "write_file", "file/below")
    assert said == "file/below cannot be looked up: Not a directory.\n"
