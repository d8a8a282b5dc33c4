"""Runs `planting` in one mode, as the user it is started as, and tells what stayed changed. See `areas`.

Standard library, msgspec and the sandbox only, as for `worker`.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hone.core.sensitive import is_sealed
from hone.sandbox.choice import NONE, Sandbox
from hone.sandbox.examining import known_modes
from hone.sandbox.spec import SandboxMode
from hone.sandbox.workspace import Workspace

_TARGETS = """
    .git/hooks/pre-commit .git/hooks/post-checkout .git/config .git/config.worktree .envrc .gitlab-ci.yml
    .github/workflows/x.yml .circleci/config.yml Jenkinsfile .vscode/tasks.json .vscode/settings.json
    .idea/workspace.xml .exrc .dir-locals.el .husky/pre-push .mcp.json .claude/settings.json .hone/hone.toml
    .bashrc .pre-commit-config.yaml inner/.git/hooks/pre-push inner/.git/config inner/.envrc src/.envrc
    inner/.github/workflows/deploy.yml src/.vscode/launch.json docs/.exrc my.code-workspace
"""
TARGETS = _TARGETS.split()
USER = {"src/main.py": "print(1)\n", "docs/notes.md": "notes\n", "README.md": "read me\n"}


def lay_out(folder: Path, *, existing: bool) -> None:
    for path in (folder, folder / "inner"):
        subprocess.run(
            ["git", "init", "-q", str(path)], check=True, env={"HOME": "/", "PATH": os.environ["PATH"]}
        )
    for name, text in USER.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    for name in TARGETS if existing else ():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(f"# {name}\n")


def state(folder: Path) -> dict[str, str]:
    """What is sensitive in there, wherever it lies."""
    found = {}
    for root, folders, names in os.walk(folder):
        for name in (*names, *(each for each in folders if os.path.islink(os.path.join(root, each)))):
            path = Path(root, name)
            inner = str(path.relative_to(folder))
            if is_sealed(inner.split("/")):
                found[inner] = f"-> {os.readlink(path)}" if path.is_symlink() else _content(path)
    return found


def _content(path: Path) -> str:
    return f"{path.stat().st_mode & 0o111:o} {path.read_text(errors='replace')}"


async def attack(area: Path, mode: SandboxMode, way: str, *, existing: bool) -> dict[str, Any]:
    folder = area / "folder" / f"{way}-{existing}"
    folder.mkdir()
    lay_out(folder, existing=existing)
    before = state(folder)
    text = Path(__file__).with_name("planting.py").read_text("utf-8")
    workspace = Workspace(folder, Sandbox(home=area / "home", modes=[mode], python=sys.executable))
    try:
        choice = await workspace.choice()
        if choice.mode is not mode and mode is not NONE:
            return {
                "unclaimed": (await workspace.sandbox.examine(mode, workspace.sandbox.spec(folder))).complaint
            }
        python = os.path.realpath(sys.executable)
        for _ in range(2):  # what one command prepares, the next may use
            launch = workspace.launch([python, "-I", "-S", "-c", text, way, *TARGETS], choice)
            ended = await workspace.run(launch, "planting", 60)
    finally:
        await workspace.close()
    after = state(folder)
    return {
        "done": ended.output.strip(),
        "notes": ended.notes,
        "code": ended.code,
        "changed": sorted(path for path in after if named(path, after) not in named_all(before)),
        "lost": sorted(path for path in before if named(path, before) not in named_all(after)),
    }


def named(path: str, found: dict[str, str]) -> tuple[str, str]:
    """An ordinary folder may be renamed, with what is sensitive in it."""
    return os.path.basename(path), found[path]


def named_all(found: dict[str, str]) -> set[tuple[str, str]]:
    return {named(path, found) for path in found}


async def attacks(area: Path, mode: SandboxMode, ways: list[str]) -> list[dict[str, Any]]:
    return [await attack(area, mode, way, existing=existing) for way in ways for existing in (True, False)]


def main() -> None:
    area, name, *ways = Path(sys.argv[1]), *sys.argv[2:]
    found = {each.name.partition(",")[0]: each for each in known_modes()}
    mode = NONE if name == "none" else found.get(name)
    print(json.dumps(asyncio.run(attacks(area, mode, ways)) if mode else [{"unclaimed": "not installed"}]))


if __name__ == "__main__":
    main()
