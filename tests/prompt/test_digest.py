"""E3: a conversation that is too long is read as a digest that fits, the owner's words first."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from hone.core.messages import Message, ToolCall, answer, assistant, user
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.prompt.digest import CLIPS, NEXT, OWNERS, shorten
from tests.given import NOON

CALL = ToolCall("c", "read_file", "{}")


def numbered(*said: tuple[Message, Trust]) -> list[tuple[int, Node]]:
    transcript = Transcript("root")
    for message, trust in said:
        transcript = transcript.then(message, trust, NOON)
    return list(enumerate(transcript.nodes, 1))


def talk(turns: int, long: int) -> list[tuple[int, Node]]:
    said: list[tuple[Message, Trust]] = []
    for number in range(turns):
        said += [
            (user(f"wish {number}"), Trust.OWNER),
            (assistant(CALL), Trust.AGENT),
            (answer(CALL, "x" * long), Trust.LOCAL),
            (assistant(f"done {number}"), Trust.AGENT),
        ]
    return numbered(*said)


def test_with_room_everything_is_there_and_only_others_words_are_cut() -> None:
    text = shorten(talk(2, 5_000))
    assert text.count(f"[…{5_000 - CLIPS[0]:,} more characters]") == 2
    assert "#1 user:\nwish 0" in text
    assert "#8 assistant:\ndone 1" in text


@given(st.integers(1, 30), st.integers(0, 4_000), st.integers(2_000, 60_000))
def test_a_digest_fits_and_has_the_owners_words_as_long_as_those_fit(
    turns: int, long: int, room: int
) -> None:
    said = talk(turns, long)
    text = shorten(said, room=room)
    assert len(text.encode()) <= room
    assert all(f"wish {number}" in text for number in range(turns))


@given(st.lists(st.integers(0, 100_000), min_size=1, max_size=12), st.integers(2_000, 50_000))
def test_owners_words_that_are_too_long_keep_both_ends_and_the_newest_stay(
    lengths: Sequence[int], room: int
) -> None:
    said = numbered(*((user(f"begin{'é' * length}end{length}"), Trust.OWNER) for length in lengths))
    text = shorten(said, room=room)
    assert len(text.encode()) <= max(room, 2 * OWNERS[-1] + 200)
    assert text.endswith(f"end{lengths[-1]}")


def test_where_another_conversation_begins_it_is_said() -> None:
    said = numbered((user("one"), Trust.OWNER), (assistant("1"), Trust.AGENT), (user("two"), Trust.OWNER))
    assert shorten(said, {3}) == f"#1 user:\none\n\n#2 assistant:\n1\n\n{NEXT}\n\n#3 user:\ntwo"
