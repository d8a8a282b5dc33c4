"""What commands see of a user's machine: programs and what they need, no secrets, no home."""

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.sandbox.caches import BUSY, LARGEST, UNUSED, cache_variables, list_caches, open_cache, prune_caches
from hone.sandbox.host_view import HostView, survey
from hone.sandbox.identity import Identity, read_identity, write_configuration
from hone.sandbox.mounts import MountKind, arrange
from hone.sandbox.spec import SandboxAccess, SandboxSpec, SandboxUnavailable
from tests.conftest import requires


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """A home with the usual things in it."""
    home = tmp_path.resolve() / "user"
    for name in (
        *(".cargo/bin/cargo", ".cargo/credentials.toml", ".rustup/settings.toml", ".local/bin/tool"),
        *(
            ".nvm/versions/node/v20/bin/node",
            ".nvm/versions/node/v20/lib/node_modules/npm/cli.js",
            ".nvm/.npmrc",
        ),
        *(".local/share/uv/tools/ruff/pyvenv.cfg", ".local/share/uv/tools/ruff/bin/ruff", ".ssh/id_rsa"),
        *(".local/share/uv/credentials/x", ".local/share/keyrings/login", "bin/mine", "projects/x/run.py"),
        *("projects/x/secret", ".local/lib/python3.11/site-packages/x.py", ".pyenv/shims/python", ".netrc"),
        *("venvs/old/pyvenv.cfg", "venvs/old/bin/python", "a venv/pyvenv.cfg", "a venv/bin/python"),
    ):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("x")
    (home / ".local/bin/ruff").symlink_to("../share/uv/tools/ruff/bin/ruff")
    (home / ".local/bin/run").symlink_to(home / "projects/x/run.py")
    script = f"#!{home}/venvs/old/bin/python\n" if " " not in str(home) else spaced(home / "venvs/old")
    (home / ".local/bin/script").write_text(script)
    (home / ".local/bin/spaced").write_text(spaced(home / "a venv"))
    (home / "work").mkdir()
    return home


def spaced(venv: Path) -> str:
    """A script as installers write it where the system would not find the program."""
    return f"""#!/bin/sh\n'''exec' '{venv}/bin/python' "$0" "$@"\n' '''\nimport sys\n"""


def look(user: Path, path: str, access: SandboxAccess | None = None, **more: str) -> HostView:
    folders = [each if each.startswith("/") or not each else f"{user}/{each}" for each in path.split(":")]
    environ = {"HOME": str(user), "PATH": ":".join(folders), **more}
    return survey(user / "work", access or SandboxAccess(), (user / ".hone",), environ)


def sees(around: HostView, path: Path) -> bool:
    inside = any(path.is_relative_to(each) for each in around.readable)
    return inside and not any(path.is_relative_to(each) for each in around.hidden)


ALL = ".cargo/bin:.nvm/versions/node/v20/bin:.local/bin:bin:/usr/bin"


def test_programs_on_the_path_are_seen_with_what_they_need_and_nothing_else(user: Path) -> None:
    around = look(user, ALL)
    for name in (
        *(".cargo/bin/cargo", ".rustup/settings.toml", ".local/bin/tool", "bin/mine", ".pyenv/shims/python"),
        *(".nvm/versions/node/v20/lib/node_modules/npm/cli.js", ".local/share/uv/tools/ruff/pyvenv.cfg"),
        *("projects/x/run.py", ".local/lib/python3.11/site-packages/x.py", "venvs/old/pyvenv.cfg"),
        "a venv/pyvenv.cfg",
    ):
        assert sees(around, user / name), name
    for name in (
        *(".cargo/credentials.toml", ".nvm/.npmrc", ".local/share/uv/credentials/x", ".ssh/id_rsa", ".netrc"),
        *(".local/share/keyrings/login", "projects/x/secret", ".bashrc"),
    ):
        assert not sees(around, user / name), name
    assert dict(around.env)["PATH"].split(":")[:5] == [
        *(f"{user}/{each}" for each in ALL.split(":")[:4]),
        "/usr/bin",
    ]
    assert dict(around.env)["NVM_DIR"] == f"{user}/.nvm"
    assert {"cargo", "rustup", "nvm", "uv tools", "pyenv"} <= {*around.tools.names}


@pytest.mark.parametrize(
    "path", ["", ":", ".", "..", "relative/bin", "work/..", "/", "{home}", "{home}/..", "~"]
)
def test_a_careless_path_shows_no_home(user: Path, path: str) -> None:
    around = look(user, path.format(home=user))
    assert not sees(around, user / ".ssh/id_rsa")
    assert not sees(around, user / "projects/x/secret")
    assert {*around.readable}.isdisjoint({user, user.parent, Path("/")})
    assert str(user) not in dict(around.env)["PATH"].split(":")


def test_a_path_into_hones_home_or_among_keys_is_not_shown(user: Path) -> None:
    (user / ".hone" / "bin").mkdir(parents=True)
    (user / ".ssh" / "bin").mkdir()
    around = look(user, ".hone/bin:.ssh/bin")
    assert not any(path.is_relative_to(user / each) for path in around.readable for each in (".hone", ".ssh"))


def test_the_environment_has_what_is_listed_and_what_settings_name(user: Path) -> None:
    more = {
        **{"LANG": "de_DE.UTF-8", "LC_TIME": "C", "TZ": "UTC", "OPENAI_API_KEY": "sk-secret", "MINE": "mine"},
        **{
            "AWS_SECRET_ACCESS_KEY": "secret",
            "LD_PRELOAD": "/evil.so",
            "SSH_AUTH_SOCK": "/x",
            "PYTHONPATH": "/x",
        },
        **{"GIT_AUTHOR_NAME": "Me", "GIT_SSH_COMMAND": "evil", "VIRTUAL_ENV": str(user / "venvs" / "old")},
    }
    env = dict(look(user, "", SandboxAccess(env=("MINE", "ABSENT")), **more).env)
    assert env["LANG"] == "de_DE.UTF-8"
    assert env["MINE"] == "mine"
    assert env["VIRTUAL_ENV"] == f"{user}/venvs/old"
    assert {"LC_TIME", "TZ", "GIT_AUTHOR_NAME"} <= env.keys()
    kept = {*more, "HOME"} - {"LANG", "LC_TIME", "TZ", "MINE", "GIT_AUTHOR_NAME", "VIRTUAL_ENV"}
    assert kept.isdisjoint(env)
    assert "ABSENT" not in env


@given(
    st.dictionaries(
        st.text("ABCDEFGHIJKLMNOPQRSTUVWXYZ_", min_size=1, max_size=12), st.just("canary"), max_size=30
    )
)
def test_no_other_variable_gets_in(environ: Mapping[str, str]) -> None:
    around = survey(
        Path("/nonexistent/folder"), SandboxAccess(), (), dict(environ) | {"HOME": "/nonexistent"}
    )
    passed = {name for name, value in around.env if value == "canary"}
    assert all(name.startswith(("LC_", "LANG", "TZ", "NO_COLOR")) for name in passed)


def test_settings_give_paths_and_secrets_in_them_stay_hidden(user: Path) -> None:
    around = look(user, "", SandboxAccess(read=(user,), write=(user / "projects",)))
    assert sees(around, user / "venvs/old/pyvenv.cfg")
    for name in (".ssh/id_rsa", ".netrc", ".cargo/credentials.toml", ".local/share/keyrings/login"):
        assert not sees(around, user / name), name
    named = look(user, "", SandboxAccess(read=(user / ".ssh" / "id_rsa",)))
    assert sees(named, user / ".ssh" / "id_rsa")


def test_a_name_to_commit_with_is_read_and_survives_being_written(user: Path) -> None:
    requires("git")
    odd = 'Ä "B" \\ #;= c'
    (user / ".gitconfig").write_text(write_configuration(Identity(odd, "a@b.c", "trunk")))
    assert look(user, "").identity == Identity(odd, "a@b.c", "trunk")
    (user / ".gitconfig").unlink()
    assert look(user, "").identity == Identity()
    assert str(Identity()) == "none"
    assert read_identity(b"user.name\nA\nB\0user.email\na@b.c\0") == Identity("", "a@b.c")


# Mounts

places = st.lists(st.sampled_from(["a", "b", ".c"]), min_size=1, max_size=4).map("/".join)
rules = st.lists(
    st.tuples(st.sampled_from(["readable", "writable", "sealed", "guarded", "hidden"]), places), max_size=9
)


def apply(path: str, steps: list[tuple[str, str]]) -> str:
    """What a command can do at a path, by rules from the outermost to the innermost."""
    state = "nothing"
    for place, rule in sorted(steps, key=lambda step: step[0].count("/")):
        if path == place or path.startswith(f"{place}/"):
            match rule:
                case "readable":
                    state = "read"
                case "writable":
                    state = "write"
                case "sealed" | "guarded":
                    state = "read" if state == "write" else state
                case "hidden":
                    state = "nothing"
    return state


MEANS = {
    MountKind.OWN: "writable",
    MountKind.LEND: "readable",
    MountKind.SEAL: "sealed",
    MountKind.HIDE: "hidden",
}


@given(rules=rules, read_only=st.booleans())
def test_the_innermost_of_what_was_asked_for_decides(rules: list[tuple[str, str]], read_only: bool) -> None:
    with TemporaryDirectory() as name:
        root = Path(name).resolve()
        for _, path in (("", "folder"), *rules):
            (root / path).mkdir(parents=True, exist_ok=True)
        groups = {kind: tuple(root / path for each, path in rules if each == kind) for kind, _ in rules}
        spec = SandboxSpec(root / "folder", read_only=read_only, **groups)  # type: ignore[arg-type]
        try:
            found = arrange(spec)
        except SandboxUnavailable:
            taken = {path for kind, path in rules if kind in ("sealed", "guarded", "hidden")}
            assert taken & {path for kind, path in rules if kind == "writable"}
            return
        order = ["readable", "writable", "sealed", "guarded", "hidden"]
        asked = sorted([*rules, ("writable", "folder")], key=lambda rule: order.index(rule[0]))
        if read_only:
            asked = [("readable" if kind == "writable" else kind, path) for kind, path in asked]
        wanted = [(str(root / path), kind) for kind, path in asked]
        made = [(each.path, MEANS[each.kind]) for each in found if each.kind in MEANS]
        for _, path in rules:
            assert apply(str(root / path), made) == apply(str(root / path), wanted), found


# Caches


def test_each_folder_has_a_cache_of_its_own_that_lasts(tmp_path: Path) -> None:
    one, other = (open_cache(tmp_path, tmp_path / name) for name in ("one", "other"))
    assert one
    assert one != other
    assert open_cache(tmp_path, tmp_path / "one") == one
    assert stat.S_IMODE(one.parent.parent.stat().st_mode) & 0o077 == 0
    variables = dict(cache_variables(str(one)))
    for name in (
        "XDG_CACHE_HOME",
        "PIP_CACHE_DIR",
        "npm_config_cache",
        "UV_CACHE_DIR",
        "GOCACHE",
        "CARGO_HOME",
    ):
        assert variables[name].startswith(f"{one}/")
    assert open_cache(Path("/proc/nowhere"), tmp_path) is None


def test_caches_nobody_uses_are_removed_and_large_ones_from_the_oldest_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 2_000_000_000.0
    ages = {"new": 10.0, "big": BUSY + 10.0, "bigger": BUSY + 20.0, "old": UNUSED + 10.0}
    for name, age in ages.items():
        cache = open_cache(tmp_path, tmp_path / name)
        assert cache
        (cache / "deep").mkdir()
        (cache / "deep").chmod(0)
        os.utime(cache.with_name("folder"), (now - age, now - age))
    assert [cache.folder.name for cache in list_caches(tmp_path)] == ["old", "bigger", "big", "new"]
    assert prune_caches(tmp_path, now) == [tmp_path / "old"]
    monkeypatch.setattr("hone.sandbox.caches.measure", lambda place: LARGEST // 2)
    assert prune_caches(tmp_path, now) == [tmp_path / "bigger"]
    assert prune_caches(tmp_path, now) == []
    monkeypatch.setattr("hone.sandbox.caches.measure", lambda place: 2 * LARGEST)
    assert prune_caches(tmp_path, now) == [tmp_path / "big"]
    assert [cache.folder.name for cache in list_caches(tmp_path)] == ["new"]
