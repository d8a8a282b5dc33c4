"""Read a Dockerfile, and build it without Docker: in root folders, each line as it stands.

The image `debian:bookworm-slim` is what debootstrap makes of Debian's packages. RUN, COPY, ENV, WORKDIR and
USER do what Docker's reference says, as far as our file uses them. An instruction unknown here is an error.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.deploy import debian

OPTION = re.compile(r"--([a-z-]+)=(\S+)\s+")
NOTED = {"EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD", "VOLUME"}
DONE = {"RUN", "COPY", "ENV", "WORKDIR", "USER"}


@dataclass(frozen=True)
class Line:
    number: int
    name: str
    options: Mapping[str, str]
    rest: str

    @property
    def words(self) -> list[str]:
        """The rest as a list, written as JSON or with spaces."""
        return [str(each) for each in json.loads(self.rest)] if self.is_list else shlex.split(self.rest)

    @property
    def is_list(self) -> bool:
        return self.rest.startswith("[")


@dataclass
class Stage:
    image: str
    name: str
    lines: list[Line] = field(default_factory=list)

    def find(self, name: str) -> Line:
        """The last one counts."""
        return [line for line in self.lines if line.name == name][-1]

    @property
    def variables(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for line in self.lines:
            if line.name == "ENV":
                found |= dict(word.split("=", 1) for word in line.words)
        return found


def read(path: Path) -> list[Stage]:
    stages: list[Stage] = []
    for line in _lines(path.read_text("utf-8")):
        if line.name == "FROM":
            image, *name = re.split(r"\s+AS\s+", line.rest)
            stages.append(Stage(image, name[0] if name else ""))
        elif line.name in DONE | NOTED:
            stages[-1].lines.append(line)
        else:
            raise ValueError(f"line {line.number}: {line.name} is not known here")
    return stages


def _lines(text: str) -> Iterator[Line]:
    begun, number = "", 0
    for count, row in enumerate(text.splitlines(), 1):
        if row.lstrip().startswith("#") or not row.strip():
            continue
        number = number if begun else count
        begun += row
        if begun.endswith("\\"):
            begun = begun[:-1]
            continue
        name, _, rest = begun.strip().partition(" ")
        rest, options = rest.lstrip(), {}
        while (found := OPTION.match(rest)) is not None:
            options[found[1]] = found[2]
            rest = rest[found.end() :].lstrip()
        yield Line(number, name, options, rest.strip())
        begun = ""


@dataclass
class Root:
    """A root folder, and what a container of it begins with."""

    folder: Path
    variables: dict[str, str] = field(default_factory=dict)
    work: str = "/"
    user: str = "root"

    def command(
        self,
        words: Sequence[str],
        *,
        more: Mapping[str, str] = {},
        binds: Sequence[str] = (),
        sealed: bool = False,
    ) -> list[str]:
        """The command in this root, as this user. `sealed`: the root cannot be written to."""
        values = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"} | self.variables
        values |= more
        as_user = [] if self.user == "root" else self._become()
        return [
            "bwrap",
            *("--ro-bind" if sealed else "--bind", str(self.folder), "/"),
            *("--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", "--tmpfs", "/run"),
            *("--unshare-pid", "--die-with-parent"),
            *("--chmod", "1777", "/tmp"),
            *binds,
            *("--clearenv", *(word for pair in values.items() for word in ("--setenv", *pair))),
            *("--chdir", self.work, "--cap-add", "ALL"),
            *as_user,
            *words,
        ]

    def _become(self) -> list[str]:
        row = next(
            row.split(":")
            for row in (self.folder / "etc/passwd").read_text().splitlines()
            if row.startswith(f"{self.user}:")
        )
        return [
            *("setpriv", "--reuid", row[2], "--regid", row[3], "--clear-groups"),
            *("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs"),
        ]

    def inside(self, path: str) -> Path:
        return self.folder / os.path.normpath(os.path.join(self.work, path)).lstrip("/")


class Builder:
    """Makes a root folder for each stage, below `folder`."""

    def __init__(self, context: Path, folder: Path) -> None:
        self.context, self.folder = context, folder
        self.roots: dict[str, Root] = {}
        self.ran: list[str] = []

    def build(self, stages: Sequence[Stage]) -> Root:
        for number, stage in enumerate(stages):
            assert stage.image == "debian:bookworm-slim", stage.image
            root = Root(self.folder / f"root-{number}")
            debian.copy(root.folder)
            for line in stage.lines:
                self.perform(root, line)
            self.roots[stage.name] = root
        return root

    def perform(self, root: Root, line: Line) -> None:
        if line.name == "RUN":
            self.run(root, line.words if line.is_list else ["/bin/sh", "-c", line.rest])
            self.ran.append(line.rest)
        elif line.name == "COPY":
            self.copy(root, line)
        elif line.name == "ENV":
            root.variables |= dict(word.split("=", 1) for word in line.words)
        elif line.name == "WORKDIR":
            root.work = os.path.join(root.work, line.rest)
            root.inside(".").mkdir(parents=True, exist_ok=True)
        elif line.name == "USER":
            root.user = line.rest

    def run(self, root: Root, words: Sequence[str]) -> None:
        command = root.command(words, more=debian.host_variables(), binds=debian.BINDS)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{words[-1]}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"

    def copy(self, root: Root, line: Line) -> None:
        *sources, target = line.words
        origin = self.roots[line.options["from"]].folder if "from" in line.options else self.context
        place = root.inside(target)
        for source in sources:
            found = origin / source.lstrip("/")
            if found.is_dir():
                shutil.copytree(found, place, symlinks=True, dirs_exist_ok=True)
                continue
            one = place / found.name if target.endswith("/") else place
            one.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(found, one)
            if "chmod" in line.options:
                one.chmod(int(line.options["chmod"], 8))
