"""Searching: patterns that cannot be used, files that must stay out, and a walk that can be stopped."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.permit import Effect
from hone.core.tool import Outcome
from hone.core.trust import Trust
from hone.tools.search import REACH, _risk, fits, globbed, search_tool
from tests.allowed import WORK
from tests.tools.calls import EMPTY, called, perform


def plant(folder: Path, files: dict[str, str | bytes]) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def found(folder: Path, **arguments: object) -> list[str]:
    outcome = perform(search_tool(folder, WORK), **arguments)
    assert not outcome.failed, outcome.text
    return outcome.text.splitlines()


@pytest.mark.parametrize(
    "pattern", ["(", "[a", "*a", "a{2,1}", "(?P<n>a)(?P<n>b)", "(?<=a+)b", "\\", "a{99999999999}"]
)
def test_a_pattern_that_is_no_regex_is_refused_with_the_reason(tmp_path: Path, pattern: str) -> None:
    outcome = perform(search_tool(tmp_path, WORK), pattern=pattern)
    assert outcome.failed
    assert outcome.text.startswith("The pattern is not a valid Python regex: ")


ENDLESS = [
    "(a+)+$",
    "(a|aa)*b",
    "(a?b?)*c",
    "((a+)b?)*",
    "(?:a{1,3})+$",
    "(?P<x>a*)*",
    "(a+){2,}",
    "([^/]+/?){20}$",
    r"(\w\s*)+:",
]
FINE = [
    r"(\d{1,3}\.){3}\d+",
    "foo.*bar",
    "(foo)+",
    "(?:x)*",
    r"(\(a\+)+",
    "([(+*]x)+",
    "(foo|bar)baz",
    "(?i)todo|fixme",
    ")",
]


@pytest.mark.parametrize("pattern", ENDLESS)
def test_a_pattern_that_might_never_end_is_refused_before_it_is_used(tmp_path: Path, pattern: str) -> None:
    plant(tmp_path, {"x": "a" * 60 + "!"})
    outcome = perform(search_tool(tmp_path, WORK), pattern=pattern)
    assert outcome.failed
    assert "may never end" in outcome.text


def test_an_ordinary_pattern_is_not_taken_for_an_endless_one() -> None:
    assert [pattern for pattern in FINE if _risk(pattern)] == []


@given(st.text(r"ab()[]{}|*+?\^$.,:<>=!P2", max_size=12), st.text("ab,:(){}[]!*?/", max_size=8))
def test_no_pattern_and_no_glob_raises(pattern: str, glob: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        plant(Path(folder), {"ab/b:a": "ab\nba\n", ".gitignore": f"{glob}\n!b\n"})
        assert isinstance(perform(search_tool(Path(folder), WORK), pattern=pattern, glob=glob), Outcome)


def test_without_a_pattern_and_a_glob_there_is_nothing_to_search_for(tmp_path: Path) -> None:
    assert perform(search_tool(tmp_path, WORK)) == Outcome(
        "Nothing to search for: give a pattern, a glob, or both.", failed=True, trust=Trust.AGENT
    )


@pytest.mark.parametrize(
    ("path", "reason"), [("none", "there is no such file"), ("a\0b", "embedded null byte")]
)
def test_a_place_that_is_not_there_is_said_to_be_missing(tmp_path: Path, path: str, reason: str) -> None:
    outcome = perform(search_tool(tmp_path, WORK), pattern="x", path=path)
    assert outcome.failed
    assert reason in outcome.text


def test_lines_are_found_in_the_order_of_files_and_the_rest_is_announced(tmp_path: Path) -> None:
    plant(tmp_path, {"b.txt": "x1\nno\r\nx2", "a.txt": "x0\n", "sub/c.txt": "x3\n"})
    assert found(tmp_path, pattern=r"x\d") == ["a.txt:1: x0", "b.txt:1: x1", "b.txt:3: x2", "sub/c.txt:1: x3"]
    assert found(tmp_path, pattern="^no$") == ["b.txt:2: no"]
    assert found(tmp_path, pattern=r"x\d", limit=4)[-1] == "sub/c.txt:1: x3"
    assert found(tmp_path, pattern=r"x\d", limit=2) == [
        *("a.txt:1: x0", "b.txt:1: x1"),
        "[there are more; these are the first 2]",
    ]
    assert found(tmp_path, pattern="absent") == ["No match in 3 files."]
    assert found(tmp_path, glob="*.none") == ["No file matches."]


def test_names_lead_back_to_the_file_from_wherever_the_search_began(tmp_path: Path) -> None:
    plant(tmp_path, {"sub/deep/c.txt": "x\n"})
    assert found(tmp_path, pattern="x", path="sub") == ["sub/deep/c.txt:1: x"]
    assert found(tmp_path, pattern="x", path="./sub/") == ["./sub/deep/c.txt:1: x"]
    assert found(tmp_path, pattern="x", path="sub/deep/c.txt") == ["sub/deep/c.txt:1: x"]
    assert found(tmp_path, pattern="x", path=str(tmp_path)) == [f"{tmp_path}/sub/deep/c.txt:1: x"]


def test_what_is_binary_or_large_or_long_is_left_out_and_counted(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "binary": b"x\0",
            "latin": b"x\xe9",
            "large": "x\n" * 600_000,
            "long": "." * REACH + "x\n" + "x" + "." * 400 + "\n",
            "empty": "",
        },
    )
    assert found(tmp_path, pattern="x") == [
        f"long:2: x{'.' * 299} […]",
        "[3 binary or large files were not searched]",
        "[1 long lines were searched only in their first 2,000 characters]",
    ]
    assert found(tmp_path, glob="*") == ["binary", "empty", "large", "latin", "long"]


def test_pipes_links_and_loops_are_passed_by(tmp_path: Path) -> None:
    plant(tmp_path, {"real/a": "x\n"})
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("real/a")
    (tmp_path / "real/loop").symlink_to("..")
    assert found(tmp_path, pattern="x") == ["real/a:1: x"]
    outcome = perform(search_tool(tmp_path, WORK), pattern="x", path="pipe")
    assert outcome.text.splitlines() == ["No match in 0 files.", "[1 files or folders could not be read]"]


def test_a_name_made_to_look_like_another_line_is_shown_with_escapes(tmp_path: Path) -> None:
    os.mkdir(tmp_path / "a")
    for name in (b"x\ny.py:1: forged", b"bad\xff", "\u202egpj.exe".encode()):
        (tmp_path / "a" / os.fsdecode(name)).write_text("hit\n")
    assert found(tmp_path, pattern="hit") == [
        *("a/bad\\udcff:1: hit", "a/x\\ny.py:1: forged:1: hit"),
        "a/\\u202egpj.exe:1: hit",
    ]


GITIGNORE = """
# note
*.log
!keep.log
/build
docs/*.html
temp/
**/deep/x.txt
\\#odd
"""
KEPT = (
    ".gitignore docs/sub/a.html docs/temp keep.log local one/deep/y.txt "
    "src/.gitignore src/a.log src/build/a src/sub/here"
)
LEFT_OUT = (
    "#odd a.log build/a docs/a.html one/deep/x.txt src/here src/local src/temp/a temp/a "
    ".git/config .mypy_cache/a .venv/a node_modules/m/a p/__pycache__/a"
)


def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    plant(tmp_path, dict.fromkeys([*KEPT.split(), *LEFT_OUT.split()], "x"))
    plant(tmp_path, {".gitignore": GITIGNORE, "src/.gitignore": "!a.log\nlocal\n/here\n"})
    assert " ".join(sorted(found(tmp_path, glob="*"))) == KEPT


def test_the_rules_of_the_repository_hold_below_it_but_a_named_place_is_searched(tmp_path: Path) -> None:
    plant(tmp_path, {".git/HEAD": "", ".gitignore": "*.log\n/sub/build\n", "sub/.gitignore": "q\n"})
    plant(
        tmp_path,
        dict.fromkeys(["sub/in/a.log", "sub/in/q", "sub/in/b", "sub/build/b", "node_modules/b"], "x"),
    )
    assert found(tmp_path, glob="*", path="sub/in") == ["sub/in/b"]
    assert found(tmp_path, glob="*", path="sub/build") == ["sub/build/b"]
    assert found(tmp_path, glob="*", path="node_modules") == ["node_modules/b"]


@pytest.mark.parametrize(
    ("glob", "path", "expected"),
    [
        ("*.py", "a/b/c.py", True),
        ("*.py", "a/b/c.pyc", False),
        ("a/*.py", "a/c.py", True),
        ("a/*.py", "a/b/c.py", False),
        ("a/**/*.py", "a/c.py", True),
        ("a/**/*.py", "a/x/y/c.py", True),
        ("**/b/**/c", "a/b/x/b/y/c", True),
        ("**/b/**/c", "a/x/c", False),
        ("/a", "b/a", False),
        ("a/**", "a/b/c", True),
        ("[ab].?", "x/a.c", True),
        ("[!ab].?", "x/a.c", False),
    ],
)
def test_a_glob_fits_whole_parts_of_a_path(glob: str, path: str, expected: bool) -> None:
    assert fits(globbed(glob), tuple(path.split("/"))) is expected


def test_a_glob_of_many_stars_is_answered_at_once() -> None:
    assert not fits(globbed("**/a" * 50 + "/b"), ("a",) * 2_000)
    assert not fits(globbed("*a" * 100 + "b"), ("a" * 255,))


def test_a_glob_with_braces_means_each_of_them(tmp_path: Path) -> None:
    plant(tmp_path, dict.fromkeys(["a.ts", "b.tsx", "c.js", "d.{x}"], "x"))
    assert found(tmp_path, glob="*.{ts,tsx}") == ["a.ts", "b.tsx"]
    assert found(tmp_path, glob="{a,c}.{ts,js}") == ["a.ts", "c.js"]
    assert found(tmp_path, pattern="x", glob="*.js") == ["c.js:1: x"]
    assert found(tmp_path, glob="{a,b}" * 200) == ["No file matches."]


def searching() -> bool:
    """Whether some thread is in the middle of a search."""
    for frame in sys._current_frames().values():
        inner: FrameType | None = frame
        while inner:
            if inner.f_code.co_name == "_matches":
                return True
            inner = inner.f_back
    return False


@pytest.mark.timeout(60)
def test_a_cancelled_search_stops_its_thread(tmp_path: Path) -> None:
    # Left alone it would take minutes, and the end of the event loop waits for its threads.
    plant(tmp_path, {"slow": ("a" * 80 + "\n") * 12_000})
    tool = search_tool(tmp_path, WORK)

    async def cancel() -> None:
        task = asyncio.create_task(tool.run(called(tool, pattern="a*a*a*a*b"), EMPTY))
        await asyncio.sleep(0)
        while not searching():
            pass
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert not searching()


def test_what_the_tool_declares() -> None:
    spec = search_tool(Path(), WORK).spec
    assert (spec.name, spec.effects, spec.readonly) == (
        "search_files",
        frozenset({Effect.READ}),
        True,
    )
