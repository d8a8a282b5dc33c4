"""Laws of the core values: permits only narrow, a hash stands for content and order, messages round-trip."""

import asyncio
import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.agent import Agent
from hone.core.messages import Message, Part, Role, SystemNote, Text, canonical, decode, encode, sound, user
from hone.core.permit import Effect, Permit
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.loop import Budget
from hone.models.scripted import Scripted, lines
from tests.given import NOON, begun, conversations, notes, prefixes, texts, transcript, trusts
from tests.tier import fewer

effects = st.frozensets(st.sampled_from(Effect))
permits = st.builds(Permit, effects, st.booleans(), st.booleans())
PREFIX = Prefix("openai/m", "system")


@given(permits, permits, effects, st.booleans())
def test_permits_only_narrow(one: Permit, other: Permit, asked: frozenset[Effect], readonly: bool) -> None:
    both = one & other
    assert both == other & one
    assert both & one == both
    allowed = [each.allows(asked, readonly=readonly) for each in (one, other)]
    assert both.allows(asked, readonly=readonly) == all(allowed)
    assert both.allows(asked, readonly=True) or not both.allows(asked)
    assert both.attended == (one.attended and other.attended)


@given(permits, st.lists(permits, max_size=3))
def test_a_narrowed_agent_keeps_its_prefix_and_never_gains(first: Permit, further: list[Permit]) -> None:
    agent = Agent(PREFIX, Scripted(lines("hi")), {}, first)
    for permit in further:
        narrower = agent.narrowed(permit)
        assert narrower.prefix is agent.prefix
        assert narrower.permit.effects <= agent.permit.effects
        assert agent.permit.attended or not narrower.permit.attended
        agent = narrower


@fewer(50)
@given(conversations(), conversations(), trusts)
def test_a_hash_changes_if_and_only_if_content_or_order_does(
    one: list[Message], other: list[Message], trust: Trust
) -> None:
    first, second = transcript(PREFIX, one), transcript(PREFIX, other)
    assert (first.head == second.head) == (one == other)
    relabelled = Transcript(PREFIX.digest)
    for message in one:
        relabelled = relabelled.then(message, trust, NOON.replace(year=2030))
    assert relabelled.head == first.head
    backwards = transcript(PREFIX, one[::-1])
    assert (backwards.head == first.head) == (one == one[::-1])
    assert len({node.hash for node in first.nodes}) == len(first)


@fewer(50)
@given(conversations(), prefixes, prefixes)
def test_another_prefix_is_another_chain_of_the_same_contents(
    messages: list[Message], one: Prefix, other: Prefix
) -> None:
    first = transcript(one, messages)
    moved = first.rooted(other.digest)
    assert [node.digest for node in moved.nodes] == [node.digest for node in first.nodes]
    assert (moved.head == first.head) == (one == other)
    assert [node.trust for node in moved.nodes] == [node.trust for node in first.nodes]


@fewer(50)
@given(conversations() | begun())
def test_messages_round_trip_through_their_canonical_bytes(messages: list[Message]) -> None:
    for message in messages:
        assert decode(encode(message)) == message
        assert encode(message) == canonical(json.loads(encode(message))).encode()


def test_every_character_has_one_spelling_in_what_is_hashed() -> None:
    for first in range(0, sys.maxunicode + 1, 4096):
        text = "".join(chr(each) for each in range(first, first + 4096) if not 0xD800 <= each < 0xE000)
        fields = {"parts": [{"kind": "text", "text": text}], "role": "user"}
        assert encode(user(text)) == canonical(fields).encode()


@given(notes, texts)
def test_a_note_is_apart_from_the_users_words_and_stands_before_them(note: SystemNote, text: str) -> None:
    message = user(note, text)
    assert (message.text, message.note) == (text, note)
    assert user(text).note is None
    misplaced: list[tuple[Role, tuple[Part, ...]]] = [
        (Role.USER, (Text(text), note)),
        (Role.USER, (note, note)),
        (Role.ASSISTANT, (note, Text(text))),
        (Role.TOOL, (note,)),
    ]
    for role, parts in misplaced:
        with pytest.raises(ValueError, match="first part of a user's message"):
            Message(role, parts)


@given(prefixes)
def test_a_prefix_round_trips_with_its_digest(prefix: Prefix) -> None:
    again = Prefix.decode(prefix.encode())
    assert (again, again.digest) == (prefix, prefix.digest)


@given(st.text())
def test_sound_text_can_always_be_written(text: str) -> None:
    assert sound(text).encode().decode() == sound(text)
    assert sound(sound(text)) == sound(text)


@given(texts)
def test_text_that_is_sound_stays_as_it_is(text: str) -> None:
    assert sound(text) == text


@given(st.integers(0, 20), st.lists(st.booleans(), max_size=60))
def test_a_budget_gives_what_was_refunded_and_stops_at_three_times_its_size(
    size: int, refunds: list[bool]
) -> None:
    budget, used, left = Budget(size), 0, size
    for refund in refunds:
        granted = budget.consume()
        assert granted == (left > 0 and used < 3 * size)
        used, left = used + granted, left - granted
        if refund:
            budget.refund()
            left += 1


def test_a_budget_is_exact_under_threads() -> None:
    budget = Budget(1_000)

    def spend() -> int:
        return sum(budget.consume() for _ in range(400))

    async def together() -> int:
        return sum(await asyncio.gather(*(asyncio.to_thread(spend) for _ in range(8))))

    assert asyncio.run(together()) == 1_000
