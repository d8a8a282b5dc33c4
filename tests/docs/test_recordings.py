"""The pictures: they show what the commands print today, and no word stands outside its frame."""

import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.docs.pages import ROOT
from tests.tier import Tier

SVG = "{http://www.w3.org/2000/svg}"
RECORDINGS = {
    "chat.svg": (["--scene", "scripts/scenes/chat.json"], []),
    "setup.svg": (["--scene", "scripts/scenes/setup.json"], ["setup"]),
    "demo.svg": (["--begin", "> Right", "--end", "Your turn"], ["demo"]),
}
STORY = "scripts/scenes/first.json"
FIRST = {f"first-{name}.svg" for name in ("1-setup", "2-task", "3-rewind", "4-lesson", "5-resume")}


def words(picture: Path) -> str:
    """What is written in it. Figures and ids differ from run to run."""
    description = ElementTree.parse(picture).getroot().findtext(f"{SVG}desc") or ""
    return re.sub(r"\d[\d,.]*", "N", re.sub(r"\b[0-9a-f]{10}\b", "ID", description))


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_recording_shows_what_the_command_prints_today(name: str, tmp_path: Path) -> None:
    options, arguments = RECORDINGS[name]
    fresh = tmp_path / name
    record(fresh, options, arguments)
    quoted = " ".join(f'"{each}"' if " " in each else each for each in options)
    assert words(ROOT / "docs" / "recordings" / name) == words(fresh), (
        f"Renew it: .venv/bin/python scripts/record docs/recordings/{name} {quoted} -- "
        f".venv/bin/hone {' '.join(arguments)}"
    )


def test_a_first_session_looks_as_it_is_shown(tmp_path: Path, tier: Tier) -> None:
    if not tier.long:
        pytest.skip("a whole session belongs to the long tier")
    record(tmp_path, ["--story", STORY], [])
    for name in sorted(FIRST):
        assert words(ROOT / "docs" / "recordings" / name) == words(tmp_path / name), (
            f"Renew it: .venv/bin/python scripts/record docs/recordings --story {STORY} -- .venv/bin/hone"
        )


def record(target: Path, options: list[str], arguments: list[str]) -> None:
    command = [*options, "--", str(Path(sys.executable).with_name("hone")), *arguments]
    recorder = [sys.executable, "-W", "error", str(ROOT / "scripts" / "record"), str(target)]
    done = subprocess.run(
        [*recorder, *command], capture_output=True, text=True, timeout=60, check=False, cwd=ROOT
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_there_is_no_recording_that_nobody_renews() -> None:
    assert {path.name for path in (ROOT / "docs" / "recordings").iterdir()} == {*RECORDINGS, *FIRST}


@pytest.mark.parametrize(
    "picture",
    [ROOT / "docs" / "line.svg", *sorted((ROOT / "docs" / "recordings").iterdir())],
    ids=lambda path: path.name,
)
def test_a_picture_says_in_words_what_it_shows_and_stays_in_its_frame(picture: Path) -> None:
    root = ElementTree.parse(picture).getroot()
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    named = {
        each.attrib.get("id")
        for each in (root.find(f"{SVG}title"), root.find(f"{SVG}desc"))
        if each is not None
    }
    assert set(root.attrib["aria-labelledby"].split()) == named
    for text in root.iter(f"{SVG}text"):
        said = "".join(text.itertext())
        # A letter of a wide font at this size takes 7.4 on average; a recording sets its own length.
        length = float(text.attrib.get("textLength", 7.4 * len(said)))
        assert float(text.attrib["x"]) + length <= width, said
        assert 0 < float(text.attrib["y"]) < height, said
