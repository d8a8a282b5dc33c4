"""K2: how often the measure names the entry that changed an answer, on turns of which that is known."""

import json
from pathlib import Path
from random import Random

import msgspec
import pytest
from msgspec import Struct

from hone.core.seldom import tomllib
from hone.features.attribution.measure import LIKELY, TraceScore, TurnStep, TurnText, content, rate
from hone.features.attribution.traits import match_traits
from tests.conftest import Figures

OTHERS = 22
"""Entries beside the one in question."""


class Case(Struct, frozen=True, forbid_unknown_fields=True):
    entry: str
    request: str
    answer: str
    calls: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    calls_without: tuple[str, ...] = ()
    answer_without: str | None = None

    @property
    def matters(self) -> bool:
        return self.answer_without is not None

    @property
    def turn(self) -> TurnText:
        made = [each.partition(" ") for each in self.calls]
        steps = [TurnStep(" ".join(json.loads(values).values()), "ok", (name,)) for name, _, values in made]
        return TurnText(self.request, (*steps, TurnStep(self.answer)))


def cases(name: str) -> tuple[Case, ...]:
    text = Path(__file__).with_name("attribution_cases.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)[name], tuple[Case, ...])


def count(some: tuple[Case, ...]) -> tuple[int, int, int]:
    """Return how many entries were named and right, named and wrong, and missed."""
    right = wrong = missed = 0
    for case in some:
        others = sorted({each.entry for each in some} - {case.entry})
        texts = [case.entry, *case.near, *Random(case.request).sample(others, OTHERS)]
        for place, score in enumerate(rate(texts, case.turn)):
            truth, named = place == 0 and case.matters, score.value >= LIKELY
            right, wrong, missed = (
                right + (truth and named),
                wrong + (named and not truth),
                missed + (truth and not named),
            )
    return right, wrong, missed


@pytest.mark.parametrize("name", ["tuned", "held_out"])
def test_the_measure_names_the_entry_that_changed_the_answer_and_few_others(
    name: str, figures: Figures
) -> None:
    some = cases(name)
    right, wrong, missed = count(some)
    precision, recall = right / (right + wrong), right / (right + missed)
    figures(
        f"{name}, {len(some)} turns beside {OTHERS} entries: precision {precision:.2f}, recall {recall:.2f}"
    )
    assert min(precision, recall) >= 0.8


def value(entry: str, turn: TurnText, *others: str) -> TraceScore:
    return rate([entry, *others, "Tea is at four.", "The door is blue."], turn)[0]


def test_a_word_counts_only_if_nobody_said_it_before_the_model() -> None:
    entry = "The staging server is called heron."
    turn = TurnText("Where do I deploy?", (TurnStep("Deploy to heron."),))
    assert (
        value(entry, turn).value >= LIKELY > value(entry, msgspec.structs.replace(turn, before="heron")).value
    )
    looked = (TurnStep("hosts.txt", "heron 10.0.0.7"), TurnStep("Deploy to heron."))
    assert value(entry, TurnText("Where do I deploy?", looked)).value < LIKELY
    asked = TurnText("Is heron up?", (TurnStep("Yes, heron is up."),))
    assert value(entry, asked).value < LIKELY


def test_a_word_that_many_entries_have_counts_for_less() -> None:
    turn = TurnText("Where do I deploy?", (TurnStep("To the server in Turku."),))
    alone = value("The backup server is in Turku.", turn)
    among = value("The backup server is in Turku.", turn, *(f"Office {n} is in Turku." for n in range(9)))
    assert alone.value > among.value


def test_a_name_counts_although_it_is_a_common_word() -> None:
    assert "dear" in content("Begin my mails with Dear.")
    assert "dear" not in content("Dear me, that is dear.")


@pytest.mark.parametrize(
    ("entry", "request_", "answer", "trait"),
    [
        ("Answer in German.", "How are you?", "Danke, mir geht es heute sehr gut.", "German"),
        ("Answer in German.", "Wie geht es dir heute?", "Danke, mir geht es heute sehr gut.", ""),
        ("Antworte auf Französisch.", "How are you?", "Je vais très bien, merci beaucoup.", "French"),
        ("User prefers tables.", "Compare them.", "| a | b |\n|---|---|\n| 1 | 2 |", "a table"),
        ("User prefers tables.", "Compare them in a table.", "| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("Never answer with a table.", "Compare them.", "| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("The table is made of oak.", "Compare them.", "| a | b |\n|---|---|\n| 1 | 2 |", ""),
        ("Use metric units.", "How far is it?", "It is 12 km away.", "metric units"),
        ("Use metric units.", "How far is it, in km?", "It is far.", ""),
    ],
)
def test_a_form_counts_if_an_entry_asks_for_it_and_the_request_does_not(
    entry: str, request_: str, answer: str, trait: str
) -> None:
    assert match_traits(entry, request_, answer) == trait
