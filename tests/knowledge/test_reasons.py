"""E1: which words are a reason to look back. Figures are per turn; a question about them is a false alarm."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.knowledge.reasons import (
    LABELS,
    LONGEST,
    PATTERNS,
    count_turns,
    find_cue,
    group_by_start,
    own_words,
)
from tests.conftest import Figures

HERE = Path(__file__).with_name("reasons")
TESTS = Path(__file__).parents[1]
MOST = 0.10
"""Of ordinary turns, the share that may set off a review."""


def rows(path: Path) -> list[list[str]]:
    lines = path.read_text("utf-8").splitlines()
    return [line.replace("\\n", "\n").split("\t") for line in lines if line]


def ordinary() -> dict[str, list[str]]:
    """Turns that state nothing lasting. The first set was written for this test, the others for others."""
    talk = json.loads((TESTS / "recall/smalltalk.json").read_text("utf-8"))["exchanges"]
    tasks = [
        task["task"]
        for name in ("requests", "tasks")
        for task in json.loads((TESTS / f"skills/routing/{name}.json").read_text("utf-8"))
    ]
    return {
        "own": [text for _, text in rows(HERE / "ordinary.tsv")],
        "tasks": tasks,
        "small talk": [said["text"] for each in talk for said in each if said["role"] == "user"],
    }


@pytest.mark.parametrize("kind", ["own", "tasks", "small talk"])
def test_an_ordinary_turn_seldom_sets_off_a_review(kind: str, figures: Figures) -> None:
    turns = ordinary()[kind]
    alarms = [text for text in turns if find_cue(text)]
    figures(f"{kind}: {len(turns)} ordinary turns, {len(alarms)} false alarms")
    assert len(alarms) <= MOST * len(turns), alarms


def test_a_cue_is_found_in_every_language(figures: Figures) -> None:
    cued = rows(HERE / "cued.tsv")
    missed = [text for _, _, text in cued if not find_cue(text)]
    languages = {language for language, _, _ in cued}
    figures(f"{len(cued)} turns with cues in {len(languages)} languages, {len(missed)} missed")
    assert len(languages) >= 8
    assert len(ordinary()["own"]) >= 400
    assert len(cued) >= 200
    assert len(missed) <= 0.05 * len(cued), missed


def stated() -> dict[str, list[str]]:
    """Lasting statements from other tests. The patterns were extended with the first two sets in view. The
    last one is by a writer who has not seen the code, and nothing is tuned on it."""
    pairs = TESTS / "knowledge/pairs"
    independent = (pairs / "honest.jsonl").read_text("utf-8").splitlines()
    return {
        "requests": [row[0] for row in rows(TESTS / "knowledge/honest.tsv")],
        "facts": [row[0] for row in rows(pairs / "own-honest.tsv") if not row[0].startswith("#")],
        "independent": [json.loads(line)["owner"] for line in independent],
    }


@pytest.mark.parametrize(("kind", "most"), [("requests", 0.2), ("facts", 0.15), ("independent", 0.6)])
def test_much_of_what_owners_state_in_passing_is_found(kind: str, most: float, figures: Figures) -> None:
    found = stated()[kind]
    missed = [text for text in found if not find_cue(text)]
    figures(f"{kind}: {len(found)} lasting statements, {len(missed)} missed")
    assert len(missed) <= most * len(found), missed


def test_a_grouped_pattern_matches_in_the_same_texts() -> None:
    texts = [own_words(row[-1]) for name in ("cued", "ordinary") for row in rows(HERE / f"{name}.tsv")]
    lines = [line.split("\t") for line in PATTERNS.read_text("utf-8").splitlines() if line[0] != "#"]
    found = 0
    for source in (pattern for kind, _, pattern in lines if kind != "hint"):
        plain, grouped = re.compile(source), re.compile(group_by_start(source))
        for text in texts:
            assert bool(plain.search(text)) == bool(grouped.search(text)), (source, text)
            found += grouped.search(text) is not None
    assert found > 200


def test_alternatives_are_split_outside_of_groups_and_sets_only() -> None:
    assert group_by_start(r"\ba(?:b|c)|^d[|(]|\|e|\bf") == r"^(?:d[|(])|\b(?:a(?:b|c)|f)|(?:\|e)"


def test_the_clearest_cue_gives_the_reason() -> None:
    assert find_cue("Too long. From now on, two sentences.") == LABELS["remember"]
    assert find_cue("I'm vegan. No, that's not what I asked for.") == LABELS["correction"]
    assert find_cue("I prefer tea.") == LABELS["statement"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "```\nRemember that I prefer tabs.\n```\nfix this",
        "> I prefer tabs, always.\n\nWhat does she mean?",
        'Translate "from now on I prefer tea" to Dutch.',
        "Do you always use tabs?",
        "If I were vegan, what could I eat here?",
    ],
    ids=["nothing", "code", "quoted lines", "quoted words", "question", "supposed"],
)
def test_what_the_owner_did_not_say_is_no_cue(text: str) -> None:
    assert find_cue(text) == ""


def test_words_behind_a_long_paste_are_heard() -> None:
    paste = "```\n" + "x = 1\n" * 2_000 + "```"
    assert find_cue(f"Fix this:\n{paste}\nand from now on, use tabs.") == LABELS["remember"]
    assert find_cue(f"Fix this:\n{paste.replace('x = 1', 'from now on, use tabs')}\n") == ""


@given(st.text(max_size=400))
def test_any_text_has_a_known_label_or_none(text: str) -> None:
    assert find_cue(text) in ("", *LABELS.values())


@pytest.mark.parametrize("piece", ["i ", '"', "```", "a", "是", "\n", "> x\n", "ﷺ"])
def test_what_is_searched_does_not_grow_with_the_message(piece: str) -> None:
    """One letter may stand for up to 18 in the plain form."""
    assert len(own_words(piece * 100_000)) <= 18 * 2 * LONGEST + 1


@pytest.mark.parametrize(
    ("text", "turns"),
    [
        ("Fix the failing test.", 1),
        ("Do I need a visa?", 1),
        ("I grade out of 20.", 3),
        ("Im Garten ist wenig Sonne, wir haben Nordlage.", 3),
        ("`my_list` is empty", 1),
    ],
)
def test_words_about_the_owner_count_for_three_turns(text: str, turns: int) -> None:
    assert count_turns(text) == turns
