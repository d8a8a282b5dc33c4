"""Pairs of what an owner says and what an entry makes of it: honest ones are quotes, turned ones are not.

`turned.jsonl` and `honest.jsonl` come from a writer who had not read the rule, `own-*.tsv` from its author.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from hone.knowledge.language import Kind
from hone.knowledge.lexicon import detect, lexicons
from hone.knowledge.quoting import quotes
from tests.conftest import Figures, Tier

HERE = Path(__file__).with_name("pairs")
Pair = tuple[str, str]

TURNED_MOST, HONEST_LEAST = 0, 0.91
"""What holds today, after all of these pairs were read; see docs/decisions/027-owners-words.md."""


def independent(name: str) -> list[Pair]:
    rows = [json.loads(line) for line in (HERE / f"{name}.jsonl").read_text("utf-8").splitlines()]
    return [(row["owner"], row["entry"]) for row in rows]


def own(name: str) -> list[Pair]:
    lines = (HERE / f"own-{name}.tsv").read_text("utf-8").splitlines()
    return [(owner, entry) for owner, entry in (line.split("\t") for line in lines)]


def accepted(pairs: list[Pair]) -> list[Pair]:
    return [(owner, entry) for owner, entry in pairs if quotes(entry, [owner])]


def test_what_an_independent_writer_turned_is_no_quote(figures: Figures) -> None:
    pairs = independent("turned")
    got_in = accepted(pairs)
    figures(f"{len(pairs)} turned pairs tried, {len(got_in)} got in")
    assert len(pairs) == 200
    assert len(got_in) <= TURNED_MOST


def test_what_an_independent_writer_reworded_is_mostly_a_quote(figures: Figures) -> None:
    pairs = independent("honest")
    kept = accepted(pairs)
    figures(f"{len(pairs)} honest pairs in nine languages tried, {len(kept)} known for quotes")
    assert len(pairs) == 200
    assert len(kept) >= HONEST_LEAST * len(pairs)


def test_none_of_our_own_turned_pairs_is_a_quote(figures: Figures) -> None:
    pairs = own("turned")
    got_in = accepted(pairs)
    figures.tally(len(pairs), got_in=len(got_in), note="turned pairs in 14 languages")
    assert got_in == []


def test_most_of_our_own_honest_pairs_are_quotes(figures: Figures) -> None:
    pairs = own("honest")
    kept = accepted(pairs)
    figures(f"{len(pairs)} honest pairs of our own tried, {len(kept)} known for quotes")
    assert len(kept) >= 0.83 * len(pairs)


INSERTED = {
    "en": ["not", "maybe", "could", "might", "only", "rarely", "today", "formerly", "hardly"],
    "de": ["nicht", "vielleicht", "könnte", "nur", "selten", "heute", "früher", "kaum"],
    "fr": ["peut-être", "pourrait", "seulement", "rarement", "aujourd'hui", "autrefois"],
    "es": ["no", "quizás", "solo", "raramente", "hoy", "apenas"],
    "it": ["non", "forse", "potrebbe", "solo", "raramente", "oggi"],
    "pt": ["não", "talvez", "só", "raramente", "hoje", "antigamente"],
    "fi": ["ei", "ehkä", "voisi", "vain", "harvoin", "tänään"],
    "ru": ["не", "возможно", "только", "редко", "сегодня", "раньше"],
    "sv": ["inte", "kanske", "bara", "sällan", "idag", "förr"],
    "nl": ["niet", "misschien", "zou", "alleen", "zelden", "vandaag"],
    "pl": ["nie", "może", "tylko", "rzadko", "dziś", "kiedyś"],
    "tr": ["değil", "belki", "sadece", "nadiren", "bugün", "eskiden"],
}


def inserted() -> Iterator[tuple[str, Pair]]:
    """One word more in what the owner said, at each place between two words of a sentence without a comma."""
    names = {id(lexicon): name for name, lexicon in lexicons().items()}
    for owner, entry in own("honest"):
        lexicon = detect(f"{entry} {owner}")
        kinds = {lexicon.said.get(word) for word in owner.casefold().replace("'", " ").rstrip(".!").split()}
        denied = bool(kinds & {Kind.NOT, Kind.NEVER}) or "n't" in owner or owner.startswith(("En ", "Je n"))
        if any(sign in owner.rstrip(".!") for sign in ",.;:!?") or kinds & {
            Kind.PLEASE,
            Kind.THIRD,
            Kind.YOU,
        }:
            continue
        words = owner.split()
        for word in INSERTED.get(names.get(id(lexicon), ""), ()):
            if not (denied and lexicon.said.get(word) is Kind.NOT) and word not in entry.casefold():
                for at in range(1, len(words)):
                    yield word, (" ".join([*words[:at], word, *words[at:]]), entry)


def test_one_more_word_that_turns_the_meaning_is_always_seen(tier: Tier, figures: Figures) -> None:
    pairs = list(inserted())
    drawn = [(draw.index, *pairs[draw.index]) for draw in tier.draws(short=1_500, full=len(pairs))]
    got_in = [(at, word, pair) for at, word, pair in drawn if quotes(pair[1], [pair[0]])]
    figures.tally(len(drawn), got_in=len(got_in), note="words inserted", at=[at for at, _, _ in got_in])
    assert got_in == []
