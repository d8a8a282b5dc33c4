"""F4: what another agent was taught comes over as proposals, and counts when the owner says so."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.errors import HoneError, Refused
from hone.core.ledger import USER, ChangeState, project
from hone.features.imports import servers_elsewhere
from hone.features.imports.knowledge import gather_knowledge, split_instructions
from hone.features.imports.knowledge_commands import is_granting, read_choice
from hone.features.imports.rules_elsewhere import (
    RuleProposal,
    read_claude_rules,
    read_codex_rules,
    translate,
)
from hone.features.imports.servers_elsewhere import ServerProposal, read_toml_servers, write_servers
from hone.knowledge.journal import Add
from hone.settings import Settings
from tests.cli.driving import environment, terminal
from tests.features import others
from tests.story.test_cli_import import command

GUIDE = """\
# About me
- Answer in one sentence.
* Use tabs
  and not spaces.

I live in Bergen. I sail.

<!-- not for you -->
@~/other.md

```sh
rm -rf /
```
1. Answer in one sentence.
"""
SKILL = """\
---
name: tide
description: Read tide tables. Use before sailing.
allowed-tools: Bash
hooks:
  Stop: x
---

1. Look.
"""
DENIED, ALLOWED = "Bash(rm -rf:*)", "Bash(git status)"


def claude(folder: Path) -> Path:
    """The folder of Claude Code with everything that can come over."""
    home = folder / ".claude"
    (home / "skills" / "tide").mkdir(parents=True)
    (home / "skills" / "tide" / "SKILL.md").write_text(SKILL)
    (home / "CLAUDE.md").write_text(GUIDE)
    rules = {"deny": [DENIED, "Read(./.env)"], "allow": [ALLOWED], "ask": ["Bash(git push:*)"]}
    (home / "settings.json").write_text(json.dumps({"permissions": rules}))
    server = {"command": "npx", "args": ["-y", "gh@1"], "env": {"GITHUB_TOKEN": "abc", "LEVEL": "info"}}
    (folder / ".claude.json").write_text(json.dumps({"mcpServers": {"github": server, "odd": {}}}))
    work = home / "projects" / "-work-parser"
    (work / "memory").mkdir(parents=True)
    (work / "memory" / "MEMORY.md").write_text("- The build needs node 20.\n")
    (work / f"{others.SESSION}.jsonl").write_bytes(others.lines(others.claude()))
    return home


def test_every_item_and_paragraph_of_a_guide_is_one_entry_and_code_is_none() -> None:
    assert split_instructions(GUIDE) == [
        "Answer in one sentence.",
        "Use tabs and not spaces.",
        "I live in Bergen. I sail.",
    ]


@given(st.text(max_size=200))
def test_any_text_gives_entries_of_one_line_each_once(text: str) -> None:
    found = split_instructions(text)
    assert len(found) == len(set(found))
    assert all(entry.strip() == entry and entry for entry in found)


def test_everything_is_gathered_from_its_place_and_nothing_there_is_changed(tmp_path: Path) -> None:
    home = claude(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    moved = gather_knowledge("claude-code", home)
    said = [(each.target, each.edit.text) for each in moved.learned.proposals if isinstance(each.edit, Add)]
    assert said[:3] == [(USER, entry) for entry in split_instructions(GUIDE)]
    assert said[3:] == [(project("/work/parser"), "The build needs node 20.")]
    assert moved.learned.proposals[-1].target == "skill:tide"
    assert [(each.kind, each.rule) for each in moved.rules] == [
        ("deny", "terminal: rm -rf *"),
        ("deny", "read_file: .env"),
        ("allow", "terminal: git status"),
    ]
    [server] = moved.servers
    assert (server.name, server.summary, server.withheld) == ("github", "npx -y gh@1", ("GITHUB_TOKEN",))
    assert server.env == {"GITHUB_TOKEN": "${GITHUB_TOKEN}", "LEVEL": "info"}
    assert len(moved.problems) == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
    with pytest.raises(HoneError):
        gather_knowledge("codex", tmp_path / "nowhere")


def test_codex_and_hermes_bring_theirs(tmp_path: Path) -> None:
    codex = tmp_path / ".codex"
    (codex / "rules").mkdir(parents=True)
    (codex / "AGENTS.md").write_text("- Use make.\n")
    (codex / "rules" / "default.rules").write_text(
        'prefix_rule(pattern=["git", ["push", "fetch"]], decision="forbidden")\n'
        'prefix_rule(pattern=["ls"], decision="allow")\nprefix_rule(pattern=["x"], decision="prompt")\n'
        'prefix_rule(pattern=["a b; rm"], decision="allow")\nprint(open("/etc/passwd"))\n'
    )
    (codex / "config.toml").write_text(
        '[mcp_servers.docs]\nurl = "https://docs.example/mcp"\nbearer_token_env_var = "DOCS"\n'
    )
    skill = tmp_path / ".agents" / "skills" / "tide"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text(SKILL)
    moved = gather_knowledge("codex", codex)
    assert [each.target for each in moved.learned.proposals] == [USER, "skill:tide"]
    assert [str(each.rule) for each in moved.rules if each.kind == "deny"] == [
        "terminal: git push *",
        "terminal: git fetch *",
    ]
    assert [each.rule for each in moved.rules if each.kind == "allow"] == ["terminal: ls *"]
    assert moved.servers[0].headers == {"Authorization": "Bearer ${DOCS}"}

    hermes = others.hermes(tmp_path / "hermes")
    (hermes / "SOUL.md").write_text("Be brief.\n")
    (hermes / "config.yaml").write_text("mcp_servers:\n  time: {command: uvx, args: [mcp-server-time]}\n")
    moved = gather_knowledge("hermes", hermes)
    assert len(moved.learned.proposals) == len(others.MEMORY) + 3
    assert [each.summary for each in moved.servers] == ["uvx mcp-server-time"]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Bash", "terminal: *"),
        ("Bash(npm run test:*)", "terminal: npm run test *"),
        ("Bash(git status)", "terminal: git status"),
        ("Bash(git * main)", ""),
        ("Read(~/.ssh/**)", "read_file: ~/.ssh/**"),
        ("Edit(docs/**)", "write_file: docs/**"),
        ("Write(//etc/hosts)", "write_file: /etc/hosts"),
        ("Edit(/docs)", ""),
        ("WebFetch(domain:docs.python.org)", "web_fetch: docs.python.org"),
        ("WebFetch", ""),
        ("mcp__github__create", ""),
        ("Bash(a\nb)", ""),
    ],
)
def test_a_rule_means_the_same_here_or_is_left_behind(theirs: str, ours: str) -> None:
    assert translate(theirs) == ours


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.text(max_size=9), st.lists, max_leaves=4).map(
        lambda value: json.dumps({"permissions": {"allow": value}, "mcpServers": value}).encode()
    )
)
def test_files_of_any_bytes_are_read_without_an_accident(data: bytes) -> None:
    problems: list[str] = []
    for read in (
        *(read_claude_rules, read_codex_rules, read_toml_servers),
        *(servers_elsewhere.read_json_servers, servers_elsewhere.read_yaml_servers),
    ):
        list(read(data, "file", problems))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("all", {1, 2, 3}), ("a", {1, 2, 3}), ("n", set()), ("", set()), ("1 3", {1, 3}), ("2-3,1", {1, 2, 3})],
)
def test_a_choice_is_all_none_or_numbers(text: str, numbers: set[int]) -> None:
    assert read_choice(text, 3).numbers == numbers


def test_what_allows_or_starts_something_is_granting_and_a_denial_is_not() -> None:
    assert is_granting(RuleProposal("allow", "terminal: ls", "x"))
    assert is_granting(ServerProposal("a", "x", "npx"))
    assert not is_granting(RuleProposal("deny", "terminal: ls", "x"))


async def test_nothing_counts_before_it_is_approved_and_all_never_includes_an_allow(
    home: Path, tmp_path: Path
) -> None:
    path = claude(tmp_path)

    async def run(where: Path, *options: str) -> str:
        ended = await command(where, "import", "--knowledge", "claude-code", str(path), *options)
        assert ended.code == 0, ended
        return ended.out + ended.err

    shown = await run(home, "--dry-run")
    assert "8  allow   terminal: git status" in shown
    assert "9  server  github: npx -y gh@1 (set GITHUB_TOKEN" in shown
    assert "What allows something or starts a program is asked about by itself." in shown
    assert not (home / "USER.md").exists()
    await run(home, "--yes")
    async with Hone(home=home, settings=Settings()) as opened:
        waiting = await opened.ledger.pending()
        assert {each.change.standing for each in waiting} == {ChangeState.PENDING}
        assert (len(waiting), opened.permissions.rules.all()) == (5, {})
    assert not (home / "USER.md").exists()

    other = tmp_path / "other"
    said = await run(other, "--approve", "all", "--yes")
    assert "Left out: allow terminal: git status. Name it by its number to approve it." in said
    assert "  +- Answer in one sentence.\n" in said
    assert (other / "USER.md").read_text() == "".join(f"- {each}\n" for each in split_instructions(GUIDE))
    assert "allowed-tools" not in (other / "skills" / "tide" / "SKILL.md").read_text()
    stored = (other / "permissions.json").read_text()
    assert ("git status" in stored, "rm -rf" in stored) == (False, True)
    again = await run(other, "--approve", "1", "--yes")
    assert "1  allow   terminal: git status" in again
    assert "allow terminal: git status holds everywhere." in again
    assert not (other / "hone.toml").exists()
    await run(other, "--approve", "1", "--yes")
    assert "[mcp.servers.github]" in (other / "hone.toml").read_text()
    assert "There is nothing new." in await run(other, "--dry-run")


async def test_at_a_terminal_one_screen_one_choice_and_each_allow_by_itself(
    home: Path, tmp_path: Path
) -> None:
    claude(tmp_path)
    env = environment(home, HOME=str(tmp_path))
    typing = terminal("import", "--knowledge", "claude-code", env=env, folder=tmp_path)
    async with typing as screen:
        await screen.sees("Approve which? [a] all")
        screen.type("1 6-8\r")
        await screen.sees("+- Answer in one sentence.", "Approve 1 change as shown? [y/N]:")
        screen.type("y\r")
        await screen.sees("deny read_file: .env holds everywhere", "take it over? [y/N]:")
        screen.type("n\r")
        await screen.sees("4 proposals for you to read: hone pending")
        assert await screen.ended() == 0
    assert (home / "USER.md").read_text() == "- Answer in one sentence.\n"
    assert "git status" not in (home / "permissions.json").read_text()


def test_servers_go_into_the_settings_in_one_place_and_never_over_another(tmp_path: Path) -> None:
    file = tmp_path / "hone.toml"
    file.write_text("# mine\nmodel = 'a/b'\n")
    server = ServerProposal("github", "x", "npx", ("-y", "gh"), {"TOKEN": "${TOKEN}"})
    write_servers(file, [server])
    assert file.read_text() == (
        '# mine\nmodel = \'a/b\'\n\n[mcp.servers.github]\ncommand = "npx"\nargs = ["-y", "gh"]\n'
        '\n[mcp.servers.github.env]\nTOKEN = "${TOKEN}"\n'
    )
    with pytest.raises(Refused):
        write_servers(file, [server])
