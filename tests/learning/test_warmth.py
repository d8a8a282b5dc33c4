"""E3: warm or digest is arithmetic on age, model and price."""

from hypothesis import given
from hypothesis import strategies as st

from hone.core.value import replace
from hone.learning.budget import DIGEST_SHARE, SMALL, Reading, is_warm

amounts = st.floats(0, 1e6)
prices = st.none() | st.floats(0, 100)
readings = st.builds(Reading, amounts, amounts, st.integers(0, 10**6), st.booleans(), prices, prices)


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
    reading = replace(reading, same_model=True, price=reading.price or 1.0)
    assert reading.price is not None
    fresh = reading.age <= reading.lasts
    if not fresh:
        assert not is_warm(reading)
    elif reading.cached_price is None:
        assert is_warm(reading)
    else:
        assert is_warm(reading) is (reading.cached_price <= DIGEST_SHARE * reading.price)


@given(st.integers(SMALL + 1, 10**6), st.floats(0, 300))
def test_without_a_price_a_conversation_of_a_moment_ago_is_warm_and_an_older_one_is_not(
    tokens: int, age: float
) -> None:
    assert is_warm(Reading(age, 300.0, tokens))
    assert not is_warm(Reading(300.0 + age + 0.001, 300.0, tokens))
