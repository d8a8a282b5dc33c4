"""E3: warm or digest is arithmetic on age, model, and what the provider charges for its cache."""

from hypothesis import given
from hypothesis import strategies as st

from hone.core.value import replace
from hone.learning.budget import DIGEST_SHARE, SMALL, Reading, is_warm

amounts = st.floats(0, 1e6)
shares = st.none() | st.floats(0, 2)
readings = st.builds(Reading, amounts, amounts, st.integers(0, 10**6), st.booleans(), shares)


@given(readings, amounts)
def test_what_is_cold_does_not_become_warm_with_age(reading: Reading, more: float) -> None:
    assert is_warm(reading) or not is_warm(replace(reading, age=reading.age + more))


@given(readings)
def test_another_model_has_nothing_of_it_in_its_cache(reading: Reading) -> None:
    assert not is_warm(replace(reading, same_model=False))


@given(readings, st.integers(0, SMALL))
def test_a_short_conversation_is_read_as_it_is(reading: Reading, tokens: int) -> None:
    assert is_warm(replace(reading, same_model=True, tokens=tokens))


@given(readings.filter(lambda each: each.tokens > SMALL))
def test_of_a_long_one_the_cheaper_way_is_taken(reading: Reading) -> None:
    """A fork costs all tokens at the price its age gives them, a digest a fifth of them at the full one."""
    reading = replace(reading, same_model=True)
    if reading.age > reading.lasts:
        assert not is_warm(reading)
    elif reading.share is None:
        assert is_warm(reading)
    else:
        assert is_warm(reading) is (reading.share <= DIGEST_SHARE)


@given(st.integers(SMALL + 1, 10**6), st.floats(1, 10**5), st.floats(0, 1))
def test_without_a_price_a_conversation_is_warm_within_the_window_and_not_after_it(
    tokens: int, lasts: float, part: float
) -> None:
    assert is_warm(Reading(lasts * part, lasts, tokens))
    assert not is_warm(Reading(lasts * (1 + part) + 0.001, lasts, tokens))
