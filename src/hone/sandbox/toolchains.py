"""Find the user's programs: the folders on PATH, toolchain homes, virtual environments, and the targets of
links and scripts among them. Commands may read these. Finding them runs none of them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from hone.core.regex import regex
from hone.core.sensitive import is_secret
from hone.sandbox.spec import PATH, SYSTEM


class Toolchain(Struct, frozen=True):
    """`variable` names its folder, for the user and for commands; `usual` is its default place in a home;
    `parts` of it are shown, or all of it if there are none."""

    name: str
    variable: str
    usual: str = ""
    parts: tuple[str, ...] = ()
    told: bool = True
    """Whether commands get the variable."""


TOOLCHAINS = (
    Toolchain("pyenv", "PYENV_ROOT", ".pyenv"),
    # Commands have a separate CARGO_HOME, for what they download.
    Toolchain("cargo", "CARGO_HOME", ".cargo", ("bin", "env"), told=False),
    Toolchain("rustup", "RUSTUP_HOME", ".rustup"),
    Toolchain("nvm", "NVM_DIR", ".nvm"),
    Toolchain("fnm", "FNM_DIR", ".local/share/fnm"),
    Toolchain("volta", "VOLTA_HOME", ".volta"),
    Toolchain("uv", "UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    Toolchain("uv tools", "UV_TOOL_DIR", ".local/share/uv/tools"),
    Toolchain("pipx", "PIPX_HOME", ".local/share/pipx", ("venvs", "shared", "py"), told=False),
    Toolchain("Go", "GOROOT"),
    Toolchain("Java", "JAVA_HOME"),
    Toolchain("conda", "CONDA_PREFIX"),
    Toolchain("rbenv", "RBENV_ROOT", ".rbenv"),
    Toolchain("asdf", "ASDF_DATA_DIR", ".asdf"),
    Toolchain("mise", "MISE_DATA_DIR", ".local/share/mise"),
    Toolchain("sdkman", "SDKMAN_DIR", ".sdkman"),
    Toolchain("bun", "BUN_INSTALL", ".bun"),
    Toolchain("deno", "DENO_INSTALL", ".deno"),
    Toolchain("ghcup", "GHCUP_INSTALL_BASE_PREFIX", ".ghcup", ("bin", "ghc"), told=False),
    Toolchain("dotnet", "DOTNET_ROOT", ".dotnet"),
)
_BESIDE_PROGRAMS = ("lib", "lib64", "libexec", "share", "include")
_SHEBANG = 512
_EXEC = regex(r"#!/bin/sh\n'''exec' (?P<quote>['\"]?)(?P<path>/[^'\"\n]{1,400})(?P=quote) ")
_MOST = 500
"""The most programs of one folder to check."""
_DEEP, _ENTRIES = 5, 4_000
"""How deep to look for secrets in what is shown."""
_LIBRARIES = {
    "lib",
    "lib64",
    "libexec",
    "share",
    "include",
    "src",
    "node_modules",
    "site-packages",
    "__pycache__",
}
"""Folders not to search for secrets: programs keep no settings there."""


class Toolset(Struct, frozen=True):
    """`path` are the folders of a command's PATH, `shown` what it may read, `masked` the secrets in there,
    `variables` tell toolchains where they are, `names` are the toolchains found."""

    path: tuple[str, ...]
    shown: tuple[Path, ...]
    masked: tuple[Path, ...]
    variables: tuple[tuple[str, str], ...]
    names: tuple[str, ...]


def find_tools(folder: Path, closed: Sequence[Path], environ: Mapping[str, str]) -> Toolset:
    """Find the user's tools. `closed` is never shown."""
    home = Path(os.path.realpath(environ.get("HOME") or "/nonexistent"))
    search = _Search(home, folder, closed)
    path = [*search.follow_path(environ.get("PATH", ""))]
    variables, names = dict[str, str](), list[str]()
    for each in TOOLCHAINS:
        root = search.real(environ.get(each.variable) or (each.usual and str(home / each.usual)) or "")
        if root and search.show(*(root / part for part in each.parts or (".",))):
            names.append(each.name)
            if each.told:
                variables[each.variable] = str(root)
    active = search.real(environ.get("VIRTUAL_ENV", ""))
    if active and search.show_environment(active):
        variables["VIRTUAL_ENV"] = str(active)
    search.show_environment(folder / ".venv")
    own = [entry for entry in _entries(f"{home}/.local/lib") if entry.name.startswith("python3")]
    if search.show(*(Path(entry.path) for entry in own)):
        variables["PYTHONUSERBASE"] = f"{home}/.local"
    shown = [*search.shown()]
    return Toolset(
        tuple(dict.fromkeys((*path, *PATH.split(":")))),
        tuple(shown),
        tuple(secret for root in shown for secret in secrets_in(root)),
        tuple(variables.items()),
        tuple(names),
    )


def secrets_in(root: Path) -> Iterator[Path]:
    """Yield places with secrets near the top of a folder."""
    level, left = [str(root)], _ENTRIES
    for _ in range(_DEEP):
        below: list[str] = []
        for folder in level:
            entries = [*islice(_entries(folder), max(left, 0))]
            left -= len(entries)
            for entry in entries:
                if entry.is_symlink():
                    continue
                if is_secret(entry.path):
                    yield Path(entry.path)
                elif entry.name not in _LIBRARIES and _is_folder(entry):
                    below.append(entry.path)
        level = below


class _Search:
    """Collects what to show: never a home as a whole, nor a folder around the working folder."""

    def __init__(self, home: Path, folder: Path, closed: Sequence[Path]) -> None:
        self._home = home
        self._folder = folder
        self._closed = [str(path) for path in closed]
        self._shown: dict[str, None] = {}

    def shown(self) -> Iterator[Path]:
        """Yield the outermost of them."""
        for path in sorted(self._shown):
            if not any(path.startswith(f"{each}/") for each in self._shown):
                yield Path(path)

    def real(self, path: str) -> Path | None:
        real = os.path.realpath(path) if path.startswith("/") else ""
        return Path(real) if real and os.path.isdir(real) else None

    def show(self, *paths: Path) -> bool:
        """Show a place. Return True if commands can see any of it."""
        seen = [self._show(os.path.realpath(path)) for path in paths]
        return any(seen)

    def _show(self, path: str) -> bool:
        if not os.path.exists(path) or self._is_too_much(path):
            return False
        if not self._is_seen(path):
            self._shown[path] = None
        return True

    def _is_seen(self, path: str) -> bool:
        roots = (*SYSTEM, str(self._folder), *self._shown)
        return any(path == root or path.startswith(f"{root}/") for root in roots)

    def _is_too_much(self, path: str) -> bool:
        around = (self._home, self._folder, *self._closed)
        holds = any(f"{each}/".startswith(f"{path}/") for each in around if str(each) != path)
        within = any(path == each or path.startswith(f"{each}/") for each in self._closed)
        return path in ("/", str(self._home)) or holds or within or bool(is_secret(path))

    def follow_path(self, path: str) -> Iterator[str]:
        """Yield the folders on PATH that commands can see."""
        for entry in path.split(":"):
            folder = self.real(entry)
            if folder and self._show_programs(folder):
                yield str(folder)

    def _show_programs(self, folder: Path) -> bool:
        if any(str(folder) == each or str(folder).startswith(f"{each}/") for each in SYSTEM):
            return True
        if not self.show(*self._installation(folder)):
            return False
        for entry in islice(_entries(str(folder)), _MOST):
            target = os.path.realpath(entry.path) if entry.is_symlink() else _interpreter(entry.path)
            if target and os.path.isfile(target) and not self._is_seen(target):
                self.show(*self._around(Path(target)))
        return True

    def _around(self, program: Path) -> Sequence[Path]:
        """Return what to show so that one program runs."""
        return self._installation(program.parent) if program.parent.name == "bin" else (program,)

    def _installation(self, programs: Path) -> Sequence[Path]:
        """Return a folder of programs with what belongs to them."""
        root = programs.parent
        if programs.name not in ("bin", "sbin", "shims", "condabin"):
            return (programs,)
        if os.path.isfile(root / "pyvenv.cfg"):
            self.show_environment(root)
            return (root,)
        if os.path.isdir(root / "conda-meta") or (len(root.parts) > 2 and root.parts[1] == "opt"):
            return (root,)
        if root == self._home / ".local" or self._is_too_much(str(root)):
            return (programs,)
        return (programs, *(root / name for name in _BESIDE_PROGRAMS))

    def show_environment(self, root: Path) -> bool:
        """Show a virtual environment, and the Python that it was made from."""
        try:
            lines = (root / "pyvenv.cfg").read_text("utf-8", "replace").splitlines()
        except OSError:
            return False
        if not self.show(root):
            return False
        pairs = dict(line.split("=", 1) for line in lines if "=" in line)
        base = {name.strip(): value.strip() for name, value in pairs.items()}.get("home", "")
        for program in (f"{base}/python3", str(root / "bin" / "python3"), str(root / "bin" / "python")):
            real = os.path.realpath(program)
            if os.path.isfile(real) and not self._is_seen(real):
                self.show(*self._around(Path(real)))
        return True


def _entries(folder: str) -> Iterable[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _interpreter(script: str) -> str:
    """Return the program that a script names in its first line, or directly below it: installers write the
    name there if it is too long for the system, or contains a space."""
    try:
        with open(script, "rb") as file:
            text = os.fsdecode(file.read(_SHEBANG))
    except OSError:
        return ""
    if below := _EXEC.match(text):
        return below["path"]
    words = text.partition("\n")[0][2:].split() if text.startswith("#!/") else []
    return words[0] if words else ""
