"""I1: from a wheel to a first lesson, an undo, and back to a machine without Hone."""

import os
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from hone.features.uninstalling.installation import PACKAGE, find_installation
from hone.models.fake_provider import FakeProvider
from tests.cli.driving import environment, hone
from tests.story.test_cli_reviews import EAGER, LEARNED, RULE, learner, profile

ROOT = Path(__file__).parents[2]
UV = Path(sys.executable).with_name("uv")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = (
        UV,
        "build",
        "--quiet",
        "--wheel",
        "--offline",
        "--no-build-isolation",
        "--out-dir",
        folder,
        ROOT,
    )
    subprocess.run(command, check=True, env=os.environ | {"VIRTUAL_ENV": sys.prefix})
    (made,) = folder.glob("*.whl")
    return made


def install(wheel: Path, folder: Path) -> Path:
    """Install the wheel into an environment, and return its programs. Dependencies come from where the tests
    run, so that no registry is asked."""
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", folder), check=True)
    site = next(folder.glob("lib/python3*/site-packages"))
    (site / "zz_dependencies.pth").write_text(sysconfig.get_path("purelib"))
    python = folder / "bin" / "python"
    command = (UV, "pip", "install", "--quiet", "--offline", "--no-deps", "--python", python, wheel)
    subprocess.run(command, check=True)
    return folder / "bin"


async def test_an_installed_hone_answers_learns_undoes_and_leaves_only_the_home(
    wheel: Path, home: Path, tmp_path: Path
) -> None:
    programs = install(wheel, tmp_path / "env")
    (home / "hone.toml").write_text(EAGER)
    async with FakeProvider(learner()) as stage:
        env = environment(home, stage) | {"PATH": f"{programs}:{UV.parent}:{os.environ['PATH']}"}
        assert (await hone("run", "-q", RULE, env=env, program=programs / PACKAGE)).out == "Yes.\n"
        done = await hone("worker", "--once", env=env, program=programs / "hone")
        assert LEARNED in done.out
        assert profile(home) == f"- {RULE}\n"
        assert (await hone("undo", "1", env=env, program=programs / "hone")).code == 0
    before = {each: each.read_bytes() for each in home.rglob("*.md")}

    asked = await hone("uninstall", env=env, program=programs / "hone")
    assert (asked.code, "Nobody is here to ask" in asked.err) == (2, True)
    gone = await hone("uninstall", "--yes", env=env, program=programs / "hone")
    assert gone.code == 0, gone.err
    assert f"Keeps your home {home}: " in gone.out
    assert "hone uninstall --purge" in gone.out
    assert {each.name for each in programs.glob("hone*")} == set()
    assert [*(tmp_path / "env").glob("lib/python3*/site-packages/hone*")] == []
    assert {each: each.read_bytes() for each in home.rglob("*.md")} == before


async def test_a_purge_deletes_the_home_and_its_keys_and_nothing_that_is_no_home(
    home: Path, tmp_path: Path
) -> None:
    env = environment(home, HOME=str(tmp_path))
    assert (await hone("config", "set", "model", "openai/tiny", env=env)).code == 0
    assert (await hone("keys", "set", "--file", "OPENAI_API_KEY", env=env, piped=b"sk-abc")).code == 0
    looked = await hone("uninstall", "--purge", "--dry-run", env=env)
    assert f"Deletes your home {home}: " in looked.out
    assert "Deletes the key OPENAI_API_KEY in the home." in looked.out
    assert home.exists()
    other = tmp_path / "photos"
    other.mkdir()
    (other / "one.jpg").write_bytes(b"1")
    refused = await hone("uninstall", "--purge", "--yes", env=env | {"HONE_HOME": str(other)})
    assert (refused.code, "does not look like a home" in refused.err) == (1, True)
    assert (other / "one.jpg").exists()
    link = tmp_path / "link"
    link.symlink_to(home)
    assert (await hone("uninstall", "--purge", "--yes", env=env | {"HONE_HOME": str(link)})).code == 1
    done = await hone("uninstall", "--purge", "--yes", env=env)
    assert (done.code, home.exists()) == (0, False), done.err
    assert "Hone runs from a checkout." in done.out


@pytest.mark.parametrize(
    ("mark", "kind", "command"),
    [
        ("uv-receipt.toml", "uv tool", ("uv", "tool", "uninstall", PACKAGE)),
        ("pipx_metadata.json", "pipx", ("pipx", "uninstall", PACKAGE)),
    ],
)
def test_the_tool_that_installed_hone_removes_it(
    mark: str, kind: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / mark).touch()
    found = find_installation(tmp_path)
    assert (found.kind, found.command) == (kind, command)
