"""What must hold for the repository itself."""

import ast
import io
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path

import pytest

from hone.registry import FEATURES

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src" / "hone"
LOCKS = [f"requirements{name}.lock" for name in ("", "-build", "-dev", "-server")]


def nodes(folder: Path) -> Iterator[tuple[Path, ast.AST]]:
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"), str(path))):
            yield path.relative_to(ROOT), node


def uses_a_shell(node: ast.AST) -> bool:
    match node:
        case ast.keyword(arg="shell", value=value):
            return not (isinstance(value, ast.Constant) and value.value is False)
        case ast.Attribute(value=ast.Name(id="os"), attr="system" | "popen"):
            return True
        case ast.ImportFrom(module="os", names=names):
            return any(name.name in {"system", "popen"} for name in names)
        case ast.Attribute(attr="create_subprocess_shell" | "getoutput" | "getstatusoutput"):
            return True
    return False


def text_of(node: ast.AST) -> str:
    """A string as it is written; what an f-string inserts counts as one letter."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.Constant(value=bytes(data)):
            return data.decode("latin-1")
        case ast.JoinedStr(values=values):
            return "".join(text_of(value) or "x" for value in values)
    return ""


def gives_nothing_back(pattern: str) -> bool:
    """Whether a pattern has a possessive quantifier or an atomic group. Other texts have none."""
    if not re.search(r"[*+?}]\+|\(\?>", pattern):
        return False
    parsed = io.StringIO()
    try:
        with redirect_stdout(parsed):
            re.compile(pattern, re.DEBUG)
    except re.error:
        return "(?>" in pattern
    return bool(re.search(r"POSSESSIVE_REPEAT|ATOMIC_GROUP", parsed.getvalue()))


def imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_pins_every_package_by_hash_and_names_no_address(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    entries = re.split(r"\n(?=[a-z0-9])", "\n".join(row for row in text.splitlines() if row[:1] != "#"))
    assert [entry for entry in entries if "==" not in entry or "--hash=sha256:" not in entry] == []
    assert re.findall(r"https?:|file:|git\+|--(?:extra-)?index-url|--find-links", text) == []


def test_there_is_no_lock_that_names_hosts() -> None:
    assert not (ROOT / "uv.lock").exists()


def test_agents_md_stays_under_100_lines() -> None:
    path = ROOT / "AGENTS.md"
    assert not path.exists() or len(path.read_text("utf-8").splitlines()) < 100


def places(check: Callable[[ast.AST], bool]) -> list[str]:
    return [f"{path}:{line}" for path, line in findings()[check.__name__]]


@cache
def findings() -> dict[str, list[tuple[Path, int]]]:
    """List where each check finds something. Reading the source takes longest, so it is read once for all
    checks; only what they find is kept."""
    found = defaultdict[str, list[tuple[Path, int]]](list)
    for path, node in nodes(SOURCES):
        for check in (uses_a_shell, is_too_new_a_pattern, locks_or_syncs, sets_anothers_private_attribute):
            if check(node):
                found[check.__name__].append((path, getattr(node, "lineno", 0)))
    return found


def test_no_source_goes_through_a_shell() -> None:
    assert places(uses_a_shell) == []


@pytest.mark.parametrize(
    "code",
    [
        "run('ls', shell=True)",
        "run('ls', shell=flag)",
        "os.system('ls')",
        "from os import system",
        "subprocess.getoutput('ls')",
        "asyncio.create_subprocess_shell('ls')",
    ],
)
def test_a_shell_is_recognised(code: str) -> None:
    assert any(uses_a_shell(node) for node in ast.walk(ast.parse(code)))


def is_too_new_a_pattern(node: ast.AST) -> bool:
    language = "c++"
    return (text := text_of(node)) != language and gives_nothing_back(text)


def test_no_pattern_uses_what_early_versions_of_python_3_11_get_wrong() -> None:
    """Possessive quantifiers and atomic groups match other texts there, or crash."""
    assert places(is_too_new_a_pattern) == []


@pytest.mark.parametrize(
    "code",
    [
        r'r"a++"',
        r'r"[ab]*+c"',
        r'rf"(?:{a}b?+)c"',
        r'r"a{2,}+"',
        r'r"(?>a|ab)c"',
        r'b"a++"',
        r'r"(?>a" + r")"',
    ],
)
def test_a_pattern_that_gives_nothing_back_is_recognised(code: str) -> None:
    assert any(gives_nothing_back(text_of(node)) for node in ast.walk(ast.parse(code)))


def test_core_imports_only_itself_the_standard_library_and_msgspec() -> None:
    allowed = sys.stdlib_module_names | {"hone", "msgspec"}
    foreign = [
        f"{path}: {module}"
        for path, node in nodes(SOURCES / "core")
        for module in imported(node)
        if module.partition(".")[0] not in allowed
    ]
    assert foreign == []


def locks_or_syncs(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr="flock" | "lockf" | "fsync" | "fdatasync" | "sync", value=ast.Name(id=name)):
            return name in {"os", "fcntl"}
        case ast.ImportFrom(module="os" | "fcntl", names=names):
            return bool({name.name for name in names} & {"flock", "lockf", "fsync", "fdatasync", "sync"})
        case ast.Import(names=names):
            return any(name.name == "fcntl" for name in names)
    return False


SPEAKS_TO_THE_KERNEL = {Path("src/hone/sandbox/attributes.py")}
"""Answers seccomp notices through fcntl.ioctl; it locks nothing. SQLite locks and syncs its own files."""


def test_only_the_package_for_files_locks_and_syncs() -> None:
    found = {path for path, _ in findings()[locks_or_syncs.__name__]}
    assert {path for path in found if path.parts[2] != "files"} == SPEAKS_TO_THE_KERNEL


def test_what_speaks_to_the_kernel_neither_locks_nor_syncs() -> None:
    for path in SPEAKS_TO_THE_KERNEL:
        tree = ast.parse((ROOT / path).read_text("utf-8"))
        found = [ast.unparse(node) for node in ast.walk(tree) if locks_or_syncs(node)]
        assert found == ["import fcntl"]


@pytest.mark.parametrize(
    "code",
    [
        "import fcntl",
        "from fcntl import flock",
        "fcntl.flock(1, 2)",
        "from os import fsync",
        "os.fsync(file)",
    ],
)
def test_a_lock_and_a_sync_are_recognised(code: str) -> None:
    assert any(locks_or_syncs(node) for node in ast.walk(ast.parse(code)))


def measure() -> dict[str, str]:
    command = [sys.executable, str(ROOT / "scripts" / "shape"), "--no-trace"]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    rows = [line.strip("| ").split(" | ") for line in out.splitlines() if line.startswith("| ")]
    return {row[0]: row[-1] for row in rows} | {
        "features": out.partition("features that import others:\n")[2]
    }


def test_the_source_keeps_its_shape() -> None:
    """Limits of docs/architecture.md; `scripts/shape` explains each figure."""
    figures = measure()
    number = {name: int(re.sub(r"\D.*", "", text.replace(",", "")) or 0) for name, text in figures.items()}
    assert number["largest module"] <= 500
    assert number["longest function"] <= 60
    assert number["imports inside functions"] <= 20
    assert number["… of hone"] <= 5
    assert number["import cycles"] == 0
    assert number["public class names used twice"] == 0
    assert number["words in docs/words.md"] <= 60
    assert figures["features"].strip().split("\n") == [
        "- attribution: experiments",
        "- experiments: templates",
    ]


def sets_anothers_private_attribute(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Attribute)
        and isinstance(node.ctx, ast.Store)
        and bool(re.match(r"_[^_]", node.attr))
        and not (isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"})
    )


def test_nobody_sets_a_private_attribute_of_another_object() -> None:
    assert places(sets_anothers_private_attribute) == []


@pytest.mark.parametrize(("code", "is_found"), [("other._x = 1", True), ("self._x = other._x", False)])
def test_a_private_attribute_that_is_set_from_outside_is_recognised(code: str, is_found: bool) -> None:
    assert any(map(sets_anothers_private_attribute, ast.walk(ast.parse(code)))) == is_found


def test_a_feature_is_one_package_and_one_entry() -> None:
    folder = SOURCES / "features"
    packages = {each.name for each in folder.iterdir() if (each / "__init__.py").exists()}
    assert packages == {feature.name for feature in FEATURES}
    for feature in FEATURES:
        places = [place for place, _ in feature.commands.values()]
        places += [place for place in (feature.operations, feature.part) if place]
        assert all(place.startswith(f"hone.features.{feature.name}.") for place in places)
