"""K6: what a text would tell colleagues is shown before it is shared, and harmless text is left in peace."""

from hone.features.team.exposures import Exposure, ExposureKind, find_exposures
from tests.conftest import Figures
from tests.features.team_lessons import HARMLESS, PLANTED, Planted

KINDS = {
    "name": {ExposureKind.NAME},
    "path": {ExposureKind.PATH},
    "host": {ExposureKind.HOST},
    "address": {ExposureKind.ADDRESS, ExposureKind.PHONE, ExposureKind.NUMBER},
    "private": {ExposureKind.PRIVATE},
    "secret": {ExposureKind.SECRET},
}


def covers(found: Exposure, planted: Planted) -> bool:
    """Whether the whole leak is shown, under a kind that fits. Of a secret, its place is enough."""
    start = planted.text.index(planted.leak)
    end = start + len(planted.leak)
    if planted.kind == "secret":
        return found.kind is ExposureKind.SECRET and found.start < end and start < found.end
    return found.kind in KINDS[planted.kind] and found.start <= start and end <= found.end


def test_every_planted_leak_is_shown_with_its_place(figures: Figures) -> None:
    hidden = [each for each in PLANTED if not any(covers(found, each) for found in find_exposures(each.text))]
    figures.tally(len({each.text for each in PLANTED}), got_in=len(hidden))
    assert not hidden
    assert len({each.text for each in PLANTED}) == 200


def test_most_harmless_lessons_are_left_in_peace(figures: Figures) -> None:
    flagged = [each for each in HARMLESS if find_exposures(each)]
    figures(f"{len(set(HARMLESS))} harmless lessons, {len(flagged)} flagged")
    assert len(set(HARMLESS)) == 200
    assert len(flagged) <= 20, flagged


def test_the_words_of_a_secret_are_never_repeated() -> None:
    for planted in (each for each in PLANTED if each.kind == "secret"):
        told = "\n".join(each.text for each in find_exposures(planted.text))
        assert planted.leak.rpartition(" ")[2] not in told


def test_known_people_are_found_in_any_case_and_a_place_has_line_and_column() -> None:
    text = "Tidy up.\nThen tell zq-admin and ZQ-ADMIN."
    found = find_exposures(text, {"zq-admin"})
    assert [(each.kind, each.text, each.place(text)) for each in found] == [
        (ExposureKind.NAME, "zq-admin", "2:11"),
        (ExposureKind.NAME, "ZQ-ADMIN", "2:24"),
    ]
