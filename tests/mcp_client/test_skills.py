"""D1, I4: a skill of another Hone is installed over MCP, byte for byte, and only as promised."""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hone.core.clock import SystemClock
from hone.core.errors import Refused
from hone.features.mcp.client.catalog import Catalog
from hone.features.mcp.client.manager import Servers
from hone.features.mcp.client.skills import fetch_skill
from hone.features.mcp.client.values import OWN, make_server
from hone.settings.sections import McpServerSettings
from tests.story.test_cli_import import command

DOCUMENT = "---\nname: {0}\ndescription: Use {0} when the tide turns.\n---\n\n# {0}\n\nLook first.\n"


def lay(home: Path, name: str) -> None:
    folder = home / "skills" / name
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(DOCUMENT.format(name))
    (folder / "scripts" / "tide.sh").write_bytes(b"#!/bin/sh\necho h\xc3\xb6he\n")


async def test_a_skill_of_another_hone_is_installed_over_mcp_as_it_is(home: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    for name in ("tide-table", "moon-phase"):
        lay(other, name)
    args = ["-m", "hone", "--home", str(other), "mcp"]
    (home / "hone.toml").write_text(
        f"[mcp.servers.team]\ncommand = {sys.executable!r}\nargs = {args!r}\nsandbox = false\n"
    )
    several = await command(home, "skills", "install", "mcp:team", "--yes")
    assert several.code == 1
    assert "Name one of the skills of team with --path. It offers: " in several.err
    assert {"moon-phase", "tide-table"} <= set(several.err.rstrip(".\n").split(": ")[1].split(", "))
    done = await command(home, "skills", "install", "mcp:team", "--path", "tide-table", "--yes")
    assert done.code == 0, done
    assert "mcp:team/tide-table" in done.out
    for path in ("SKILL.md", "scripts/tide.sh"):
        got = home / "skills" / "tide-table" / path
        assert got.read_bytes() == (other / "skills" / "tide-table" / path).read_bytes()
    missing = await command(home, "skills", "install", "mcp:nobody", "--yes")
    assert (missing.code, "There is no MCP server" in missing.err) == (1, True)


class Answering(Servers):
    """Answers by method, without a server."""

    def __init__(self, home: Path, **answers: Any) -> None:
        super().__init__(home, Catalog(home), SystemClock(), lambda _: "")
        self._answers = answers

    async def ask(
        self, server: Any, method: str, params: Mapping[str, Any], elicit: Any = None
    ) -> dict[str, Any]:
        return dict(self._answers[method.replace("/", "_")])


FILES = [{"uri": "skill://tide/SKILL.md", "digest": "sha256:00"}]


@pytest.mark.parametrize(
    ("listed", "read", "reason"),
    [
        ({"skills": [{"uri": "skill://tide/SKILL.md", "resources": FILES}]}, {"text": "x"}, "digest"),
        ({"skills": [{"uri": "skill://tide/SKILL.md", "resources": FILES}]}, {"blob": "?"}, "cannot be read"),
        ({"skills": [{"uri": "skill://tide/SKILL.md", "resources": []}]}, {}, "without SKILL.md"),
        ({"skills": ["tide"]}, {}, "cannot be read"),
        ({"skills": []}, {}, "It offers: none."),
    ],
)
async def test_what_is_not_as_promised_is_not_installed(
    tmp_path: Path, listed: Any, read: Any, reason: str
) -> None:
    servers = Answering(tmp_path, skills_list=listed, resources_read={"contents": [read]})
    server = make_server("team", McpServerSettings("x"), OWN, tmp_path)
    with pytest.raises(Refused, match=reason):
        await fetch_skill(servers, server, "")
