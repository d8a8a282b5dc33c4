"""Which files a skill may hold: what would be trouble somewhere is refused, and what people write is not."""

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.visible import visible
from hone.knowledge.skills.paths import (
    BYTES,
    DOCUMENT_CHARACTERS,
    FILE_BYTES,
    FILES,
    FOLDERS,
    accept,
    check,
    weigh,
)
from tests.conftest import Figures, Tier
from tests.knowledge.nasty import nasty

ADVICE = {
    "": "lies below references/, templates/, scripts/ or assets/",
    "notes.md": "lies below",
    "references": "lies below",
    "/references/a.md": "lies below",
    "./references/a.md": "lies below",
    "References/a.md": "lies below",
    "SKILL.md": "written as the skill's document",
    "references/skill.MD": "written as the skill's document",
    "references/SKILL.md/a.md": "written as the skill's document",
    "references/SKILL.md. ": "written as the skill's document",
    "references/\uff33KILL.md": "written as the skill's document",
    "references/SK\u0131LL.md": "written as the skill's document",
    "references/../a.md": "may be empty, begin with a dot",
    "references/./a.md": "may be empty, begin with a dot",
    "references//a.md": "may be empty, begin with a dot",
    "references/": "may be empty, begin with a dot",
    "references/.hidden": "may be empty, begin with a dot",
    "references/a.md ": "end with one",
    "references/a/b/c/d/e.md": "no more than 4 names",
    "references/" + "x" * 101: "longer than 100 characters",
    "references/" + "日" * 86: "longer than 100 characters and 255 bytes",
    "references/" + "/".join(["x" * 99] * 3): "it has 310 characters",
    "references/a\\b.md": r"'\\' may not be in a name",
    "references/a\0.md": r"'\x00' may not be in a name",
    "references/a\u2215b.md": r"'\u2215' may not be in a name",
    "references/a\u200b.md": r"'\u200b' may not be in a name",
    "references/a:b": "':' may not be in a name",
    "references/\ud800": r"'\ud800' may not be in a name",
    "references/a\u3164.md": "hide or look like others",
    "references/e\u0301.md": "hide or look like others",
    "references/nul.tar.gz": "a device on Windows",
    "references/Com1 .md": "a device on Windows",
}
USUAL = [
    "references/notes.md",
    "references/merged/release-notes.md",
    "scripts/make_report.py",
    "templates/letter (formal).docx",
    "assets/icon@2x.png",
    "references/c++.md",
    "references/größe.md",
    "references/参考.md",
    "references/व्हाट्सऐप.md",
    "references/команды/список 2.md",
    "references/a/b/c/d.md",
    "references/console.md",
    "references/com10.md",
    "references/my-SKILL.md.txt",
    "references/" + "日" * 85,
]


@pytest.mark.parametrize("path", ADVICE, ids=ascii)
def test_what_cannot_be_a_support_file_is_refused_with_advice(path: str) -> None:
    with pytest.raises(Refused) as refused:
        check(path)
    assert ADVICE[path] in str(refused.value)


@pytest.mark.parametrize("path", USUAL, ids=ascii)
def test_a_usual_path_is_given_back_as_it_is(path: str) -> None:
    assert check(path) == path


def assert_sound(path: str) -> None:
    folder, *parts = path.split("/")
    assert folder in FOLDERS
    assert 1 <= len(parts) <= 4
    assert path.isprintable()
    assert unicodedata.is_normalized("NFKC", path)
    for part in parts:
        assert part.strip(". ") == part.lstrip(" ").rstrip(". ") == part
        assert "skill.md" not in (part.casefold(), part.lower())
        assert not set(part) & set('<>:"/\\|?*~$%&;`')
        assert len(part.encode()) <= 255


def test_of_20_000_nasty_paths_none_gets_by_and_none_raises_anything_else(
    tier: Tier, figures: Figures, tmp_path: Path
) -> None:
    count, accepted, advice = 0, 0, list[str]()
    for draw in tier.draws(short=20_000, full=20_000):
        count += 1
        name = nasty(draw.random, draw.index, tmp_path)
        try:
            assert_sound(check(name))
            accepted += 1
        except Refused as error:
            advice.append(str(error))
    assert accepted > 50
    assert accepted + len(advice) == count
    assert [each for each in advice if visible(each) != each or "\n" in each] == []
    figures.tally(count, note=f"paths of skills ({accepted:,} sound ones accepted), 0 uncaught")


@given(st.text(max_size=30))
def test_whatever_is_accepted_is_sound(name: str) -> None:
    try:
        path = check(f"references/{name}")
    except Refused:
        return
    assert_sound(path)


@pytest.mark.parametrize(
    ("files", "advice"),
    [
        ({"SKILL.md": b"x" * (DOCUMENT_CHARACTERS + 1)}, "move detail to files below references/"),
        ({"assets/a": b"x" * (FILE_BYTES + 1)}, "1,048,577 bytes, and at most 1,048,576 are allowed"),
        ({f"assets/{n}": b"" for n in range(FILES + 1)}, "201 files, and at most 200 are allowed"),
        ({f"assets/{n}": b"x" * FILE_BYTES for n in range(11)}, "11,534,336 bytes, and at most 10,485,760"),
        ({"assets/a.md": b"", "assets/A.md": b""}, "assets/A.md is there already"),
        ({"assets/b/x": b"", "assets/B/y": b""}, "assets/B is there already"),
        ({"assets/a": b"", "assets/a/b": b""}, "assets/a is there already"),
    ],
)
def test_a_skill_that_is_too_large_or_collides_is_refused(files: dict[str, bytes], advice: str) -> None:
    with pytest.raises(Refused) as refused:
        weigh(files)
    assert advice in str(refused.value)


def test_a_skill_at_its_limits_is_accepted_and_facts_weigh_nothing() -> None:
    document = "é" * DOCUMENT_CHARACTERS
    files = {f"references/{number}.md": b"" for number in range(FILES - 11)}
    large = {f"assets/{number}": b"x" * FILE_BYTES for number in range(9)}
    rest = {"assets/rest": b"x" * (BYTES - 9 * FILE_BYTES - len(document.encode()))}
    weigh({**files, **large, **rest, "SKILL.md": document.encode(), "@source": b"x" * BYTES})


@pytest.mark.parametrize("path", ["reference.md", "LICENSE.txt", "ooxml/schemas/a.xsd", "examples/one.json"])
def test_what_came_with_a_skill_may_lie_elsewhere_but_is_not_written_there(path: str) -> None:
    assert accept(path) == path
    with pytest.raises(Refused, match="a file lies below references/"):
        check(path)


@pytest.mark.parametrize(
    "path", ["@origin", "@pinned", "../a", "a//b", "skill.MD", "a/b/c/d/e/f", ".hidden", "a/.b"]
)
def test_what_cannot_come_with_a_skill_is_refused(path: str) -> None:
    with pytest.raises(Refused, match="cannot be a file of a skill"):
        accept(path)
