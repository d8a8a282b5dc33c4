"""The named permits, by table."""

import pytest

from hone.core.permit import Effect, Permit
from hone.core.permits import COMPACT, CURATE, DELEGATE, REVIEW, USER

ALL = set(Effect)


@pytest.mark.parametrize(
    ("permit", "effects", "attended"),
    [
        (USER, ALL, True),
        (REVIEW, {Effect.NOTE, Effect.SKILL}, False),
        (CURATE, {Effect.SKILL}, False),
        (DELEGATE, ALL - {Effect.SPAWN}, False),
        (COMPACT, set(), False),
    ],
)
def test_a_permit_allows_its_effects_and_nothing_else(
    permit: Permit, effects: set[Effect], attended: bool
) -> None:
    looks = {effect for effect in Effect if permit.allows(frozenset({effect}), readonly=True)}
    changes = {effect for effect in Effect if permit.allows(frozenset({effect}))}
    assert looks == effects
    assert changes == (set() if permit is CURATE else effects)
    assert permit.attended is attended
    assert permit & USER == permit
