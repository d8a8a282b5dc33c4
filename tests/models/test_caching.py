"""The cache figures of the providers, by example and by law."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.models.cacherules import LOCAL, CacheMarking, CacheRule
from hone.models.fake_provider.caching import Breakpoints, Prefixes, shared, unclosed, unmarked

MARK = {"cache_control": {"type": "ephemeral"}}
CLOCK = ManualClock()
MARKED = CacheRule(300.0, marking=CacheMarking.CONTROL)
SYSTEM = "You are a careful assistant. " * 20


def chat(*texts: str, system: str = SYSTEM) -> bytes:
    messages = [{"role": "system", "content": system}, *({"role": "user", "content": text} for text in texts)]
    return json.dumps({"model": "m", "messages": messages}, separators=(",", ":")).encode()


def marked(
    *texts: str, marks: tuple[int, ...] = (-1,), system: str = SYSTEM, first: dict[str, Any] = MARK
) -> bytes:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    for mark in marks:
        blocks[mark] |= MARK
    body = {
        "model": "m",
        "max_tokens": 9,
        "system": [{"type": "text", "text": system, **first}],
        "messages": [{"role": "user", "content": [block]} for block in blocks],
    }
    return json.dumps(body, separators=(",", ":")).encode()


def test_openai_the_same_prompt_again_is_all_cached() -> None:
    cache = Prefixes(LOCAL, 64, CLOCK)
    first, second = cache.count(chat("hi")), cache.count(chat("hi"))
    assert (first.cached, first.written) == (0, 0)
    assert second.cached == second.total == first.total == len(unclosed(chat("hi"))) // 4


def test_openai_a_fork_finds_the_part_of_its_parent() -> None:
    cache = Prefixes(LOCAL, 64, CLOCK)
    parent = cache.count(chat("question", "parent goes on"))
    start = cache.count(chat("question"))
    fork = cache.count(chat("question", "fork goes its way"))
    assert start.cached == start.total
    assert start.total <= fork.cached < parent.total
    assert cache.count(chat("question", "parent goes on", "and on")).cached == parent.total


def test_openai_a_changed_first_word_finds_next_to_nothing() -> None:
    cache = Prefixes(LOCAL, 64, CLOCK)
    cache.count(chat("hi"))
    assert cache.count(chat("hi", system=f"Now {SYSTEM}")).cached < 20


def test_openai_only_the_last_requests_are_remembered() -> None:
    cache = Prefixes(LOCAL, 2, CLOCK)
    whole = cache.count(chat("one")).total
    cache.count(chat("x", system="other"))
    assert cache.count(chat("one")).cached == whole
    for _ in range(2):
        cache.count(chat("x", system="other"))
    assert cache.count(chat("one")).cached < 20


def test_anthropic_the_same_prompt_again_is_read_up_to_its_marker() -> None:
    cache = Breakpoints(MARKED, 64, CLOCK)
    first, second = cache.count(marked("hi")), cache.count(marked("hi"))
    assert first.cached == 0
    assert first.written == second.cached
    assert second.written == 0
    assert 0 <= second.total - second.cached < 4


def test_anthropic_a_longer_conversation_reads_where_an_earlier_one_wrote_and_writes_the_rest() -> None:
    cache = Breakpoints(MARKED, 64, CLOCK)
    first = cache.count(marked("one"))
    second = cache.count(marked("one", "two", marks=(0, 1)))
    assert second.cached == first.cached + first.written
    assert second.written > 0
    assert second.cached + second.written <= second.total


def test_anthropic_without_a_marker_at_the_same_place_only_the_system_is_found() -> None:
    cache = Breakpoints(MARKED, 64, CLOCK)
    cache.count(marked("one"))
    moved = cache.count(marked("one", "two", marks=(1,)))
    assert len(SYSTEM) // 4 < moved.cached < len(marked("one")) // 4
    assert cache.count(marked("one", system=f"Now {SYSTEM}")).cached == 0


def test_anthropic_a_marker_covers_its_block_wherever_it_stands_in_it() -> None:
    cache = Breakpoints(MARKED, 64, CLOCK)
    for text, cached in (("one", False), ("one", True), ("two", False)):
        block = json.dumps({**MARK, "type": "text", "text": text})
        body = f'{{"model": "m", "messages": [{{"role": "user", "content": [{block}]}}]}}'
        assert bool(cache.count(body.encode()).cached) is cached


def test_a_quoted_marker_is_text() -> None:
    body = json.dumps({"messages": [{"text": f'say {{"a":1,{json.dumps(MARK)[1:-1]}}}'}]}).encode()
    assert unmarked(body) == (unclosed(body), [])


@given(st.binary(max_size=60), st.binary(max_size=60), st.binary(max_size=60), st.integers(0, 60))
def test_the_common_beginning_is_found_exactly(start: bytes, one: bytes, other: bytes, known: int) -> None:
    length = shared(start + one, start + other, min(known, len(start)))
    assert (start + one)[:length] == (start + other)[:length]
    assert (start + one)[: length + 1] != (start + other)[: length + 1] or start + one == start + other


TEXT = st.text(st.sampled_from('ab"\\{}[],: \n'), max_size=12)
BLOCK = st.fixed_dictionaries(
    {"type": st.just("text"), "text": TEXT},
    optional={"source": st.just({"data": "}"}), "cache_control": st.just({"type": "ephemeral"})},
)


@given(st.lists(BLOCK, max_size=6), st.booleans(), st.randoms(use_true_random=False))
def test_unmarking_leaves_the_same_request_without_markers(
    blocks: list[Any], spaced: bool, random: Any
) -> None:
    shuffled = []
    for block in blocks:
        items = list(block.items())
        random.shuffle(items)
        shuffled.append(dict(items))
    separators = None if spaced else (",", ":")
    plain, ends = unmarked(json.dumps({"model": "m", "messages": shuffled}, separators=separators).encode())
    bare = [{key: value for key, value in block.items() if key != "cache_control"} for block in shuffled]
    expected = json.dumps({"model": "m", "messages": bare}, separators=separators).encode()
    assert json.loads(plain + b"]}") == json.loads(expected)
    covered = [json.loads(plain[:end] + b"]}")["messages"] for end in ends]
    assert covered == [bare[: i + 1] for i, block in enumerate(shuffled) if "cache_control" in block]
