"""The mutation check: with a guard disabled in a copy of the source, some test has to fail."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.trials.guards import Mutation

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
FAILED = 1
"""What pytest ends with if tests have failed, and nothing else went wrong."""


class Gone(Exception):
    """The text that a mutation replaces is not there, or not only once."""


@dataclass(frozen=True, slots=True)
class Found:
    """`test` is empty if nobody noticed; `reason` is how it said so."""

    mutation: Mutation
    test: str
    reason: str


def mutated(mutation: Mutation, text: str) -> str:
    found = text.count(mutation.old)
    if found != 1:
        raise Gone(
            f"{mutation.guard}: {mutation.file} has the text to replace {found} times instead of once; "
            "bring tests/trials/guards.py along."
        )
    return text.replace(mutation.old, mutation.new)


def try_out(mutation: Mutation) -> Found:
    """Disables the guard where nobody else sees it, and runs the tests until one fails."""
    with TemporaryDirectory(prefix="hone-mutation-") as folder:
        source = Path(folder, "src")
        shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("__pycache__"))
        place = source / "hone" / mutation.file
        place.write_text(mutated(mutation, place.read_text("utf-8")), "utf-8")
        tallies = Path(folder, "tallies")
        code, said = tested(mutation.tests, source, "-x", "--tallies", str(tallies))
        if code not in (0, FAILED):
            raise RuntimeError(f"{mutation.guard}: pytest ended with {code}.\n{said[-4_000:]}")
        told = [json.loads(line) for line in tallies.read_text("utf-8").splitlines()]
    failed = [each for each in told if each["failed"]]
    return Found(mutation, failed[0]["test"], failed[0]["failed"]) if failed else Found(mutation, "", "")


def tested(tests: Iterable[str], source: Path, *words: str) -> tuple[int, str]:
    """pytest over a source that is not the installed one."""
    environment = os.environ | {"PYTHONPATH": str(source)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *words]
    probe = [sys.executable, "-c", "import hone; print(hone.__file__)"]
    used = subprocess.run(probe, env=environment, cwd=ROOT, check=True, capture_output=True, text=True)
    if not used.stdout.startswith(str(source)):
        raise RuntimeError(f"The tests would run on {used.stdout.strip()} and not on {source}.")
    ended = subprocess.run(
        [*command, *tests], env=environment, cwd=ROOT, check=False, capture_output=True, text=True
    )
    return ended.returncode, ended.stdout + ended.stderr


def table(found: Sequence[Found]) -> str:
    rows = ["| guard | disabled | test that failed |", "|---|---|---|"]
    rows += [f"| {each.mutation.guard} | {each.mutation.what} | {_named(each.test)} |" for each in found]
    return "\n".join(rows)


def _named(test: str) -> str:
    path, _, name = test.partition("::")
    return (
        f"`{path}`: {name.partition('[')[0].removeprefix('test_').replace('_', ' ')}" if test else "**none**"
    )
