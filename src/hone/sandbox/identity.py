"""Read the committer: name and e-mail of the user's own git configuration, for git in the sandbox.

They become the global configuration there, which a repository's own settings override as usual.
"""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from hone.core import seldom
from hone.sandbox.spec import PATH

_KEYS = r"^(user\.(name|email)|init\.defaultbranch)$"
_PATIENCE = 5.0
_PASSED = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL")


class Identity(Struct, frozen=True):
    name: str = ""
    email: str = ""
    branch: str = ""
    """The name of a new repository's first branch."""

    def __str__(self) -> str:
        return f"{self.name} <{self.email}>" if self.name or self.email else "none"


def find_identity(folder: Path, environ: Mapping[str, str]) -> Identity:
    """Return the identity from the global configuration alone. Of the repository only its place is used,
    since an `includeIf` may depend on it."""
    git = seldom.shutil.which("git", path=PATH)
    if git is None:
        return Identity()
    passed = {name: environ[name] for name in _PASSED if environ.get(name)}
    asked = ("config", "--global", "--includes", "--null", "--get-regexp", _KEYS)
    try:
        said = subprocess.run(
            [git, "-C", str(folder), *asked],
            env={"PATH": PATH, **passed},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired):
        return Identity()
    return read_identity(said.stdout)


def read_identity(said: bytes) -> Identity:
    """Parse a configuration. The last value of a key counts. One with a line break counts as none."""
    pairs = (os.fsdecode(each).partition("\n") for each in said.split(b"\0"))
    found = {key.lower(): value for key, _, value in pairs if value.isprintable()}
    return Identity(
        found.get("user.name", ""), found.get("user.email", ""), found.get("init.defaultbranch", "")
    )


def write_configuration(identity: Identity) -> str:
    """Return the text of a .gitconfig. In the sandbox, the owner of a folder says nothing about whether to
    trust it."""
    lines = ["[safe]", "\tdirectory = *"]
    for section, key, value in (
        ("user", "name", identity.name),
        ("user", "email", identity.email),
        ("init", "defaultBranch", identity.branch),
    ):
        if value:
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            lines += [f"[{section}]", f'\t{key} = "{quoted}"']
    return "\n".join(lines) + "\n"
