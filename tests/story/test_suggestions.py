"""D2, B7: a turn names the skills that may fit it, apart from the user's words and from the prefix."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.core.errors import StoreError
from hone.core.messages import Message, SystemNote, assistant, told, user
from hone.core.permit import REVIEW
from hone.core.recall import said
from hone.core.skill import ListedSkill
from hone.core.turn import Origin
from hone.core.visible import visible
from hone.knowledge.library import Library
from hone.knowledge.skills.document import write_document
from hone.knowledge.suggesting import choose, is_new_subject
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, lines
from hone.prompt.compose import find_listed, has_more_skills, index
from hone.prompt.matches import HEADING, LIMIT, describe_matches, find_named
from hone.settings import Settings
from hone.settings.sections import ProviderSettings
from tests.skills.routing.library import library

REQUEST = "set up CI for my rust crate, github actions with cargo test and clippy"
OTHER = "the cat needs a vet before we travel, book an appointment and tell the cat sitter"
FURTHER = "zz-vet-appointments"
MANY = 120
names = st.from_regex(r"[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}", fullmatch=True)
skills = st.lists(st.builds(ListedSkill, names, st.text(max_size=1_024), st.just("d")), max_size=5)


@given(skills)
def test_a_note_is_short_and_its_names_can_be_read_again(found: list[ListedSkill]) -> None:
    note = describe_matches(found)
    assert len(told(SystemNote(note)).encode()) <= LIMIT
    assert visible(note) == note
    assert (
        find_named(user(SystemNote(f"# 1 change\n- x: y\n{note}\n# More\n- z: a"), "hi"))
        == [each.name for each in found][: note.count("\n")]
    )
    assert find_named(user(note or HEADING)) == find_named(assistant(note or HEADING)) == []
    assert bool(note) is bool(found)


def test_what_was_named_or_stands_in_the_prompt_is_not_named_again() -> None:
    one, two = (ListedSkill(name, "", "") for name in ("one", "two"))
    nothing: frozenset[str] = frozenset()
    assert choose([one, two], nothing, nothing) == [one, two]
    assert choose([one, two], nothing, frozenset({"one"})) == [one, two]
    assert choose([one, two], frozenset({"two"}), nothing) == [one]
    for named, listed in ((frozenset({"one"}), nothing), (nothing, frozenset({"one", "two"}))):
        assert choose([one, two], named, listed) == ()


def test_a_subject_is_new_if_the_turn_shares_little_with_those_since_the_last_note() -> None:
    assert is_new_subject(REQUEST, [])
    assert is_new_subject(REQUEST, ["hi", "thanks"])
    assert not is_new_subject("thanks, go on", [])
    assert not is_new_subject("cargo test fails in the CI of the crate", ["hi", REQUEST])
    assert is_new_subject(OTHER, ["hi", REQUEST])


def test_an_index_says_what_it_lists_and_whether_there_is_more() -> None:
    ranked = [ListedSkill(each.name, "words", "") for each in library()[:3]]
    texts = [f"Before.\n\n{index(ranked, total)}\n\n- after: no skill" for total in (3, 4)]
    assert [has_more_skills(text) for text in (*texts, "", "There are more.")] == [False, True, False, False]
    assert find_listed(texts[1]) == {each.name for each in ranked}


def lay(home: Path, count: int = MANY) -> None:
    """So many skills that the prompt does not list them all, and two that it does not list."""
    wanted = {each.name: each.text for each in library()[:count]}
    right = next(each for each in library() if "ci-setup" in each.name and "rust-crates" in each.name)
    body = "Call the vet, ask for an appointment, tell the cat sitter."
    wanted["zz-ci-for-rust-crates"] = right.text.replace(right.name, "zz-ci-for-rust-crates", 1)
    wanted[FURTHER] = write_document(FURTHER, "Book an appointment with the vet for a cat or a dog.", body)
    for name, text in wanted.items():
        place = home / "skills" / name
        place.mkdir(mode=0o700, parents=True)
        (place / "SKILL.md").write_text(text, encoding="utf-8")


def notes(messages: list[Message]) -> list[str]:
    return [message.note.text if message.note else "" for message in messages if message.role == "user"]


async def test_a_turn_names_skills_beside_the_users_words_and_the_prefix_stays(
    tmp_path: Path, home: Path
) -> None:
    lay(home)
    async with FakeProvider(lines("Hello.", "On it.", "Done.", "Fine.", "Noted.")) as stage:
        provider = ProviderSettings(f"{stage.url}/v1", "openai")
        settings = Settings(model="test/m", providers={"test": provider})
        async with Hone(folder=tmp_path, settings=settings, learning="queue") as hone:
            session = await hone.session()
            prefix = session.agent.prefix
            for words in ("hi", REQUEST, "and the same cargo test in the CI for windows", OTHER):
                await session.send(words)
            fork = session.fork(REVIEW, Origin.REVIEW)
            await fork.send(REQUEST)
            said_before = [*session.transcript]
            assert (await hone.session()).agent.prefix == prefix
            resumed = await hone.resume(session.id)
            assert ([*resumed.transcript], resumed.agent.prefix) == (said_before, prefix)
    first, ci, same, cat = notes(said_before)
    assert (HEADING in first, HEADING in same) == (False, False)
    assert "- zz-ci-for-rust-crates: " in ci
    assert f"- {FURTHER}: " in cat
    assert [each.text for each in said_before if each.role == "user"][1] == REQUEST
    assert all("Book an appointment" not in said(each) for each in said_before), "nobody said that"
    assert "zz-" not in prefix.system
    bodies = [json.loads(body) for body in stage.bodies]
    assert len({json.dumps(body["messages"][0]) for body in bodies}) == 1
    assert [body["messages"][: len(bodies[1]["messages"])] for body in bodies[1:]] == [
        bodies[1]["messages"]
    ] * 4
    assert HEADING not in json.dumps(bodies[4]["messages"][-1])


async def test_a_small_library_that_the_prompt_lists_adds_nothing(tmp_path: Path, home: Path) -> None:
    lay(home, 10)
    async with Hone(model=Scripted(lines("ok")), folder=tmp_path, learning="queue") as hone:
        session = await hone.session()
        assert FURTHER in session.agent.prefix.system
        await session.send(OTHER)
        assert notes([*session.transcript]) == [""]


async def test_a_search_that_fails_keeps_no_turn_back(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is gone.")

    lay(home)
    async with Hone(model=Scripted(lines("ok")), folder=tmp_path, learning="queue") as hone:
        session = await hone.session()
        monkeypatch.setattr(Library, "rank", fail)
        turn = await session.send(OTHER)
        assert (turn.text, HEADING in notes([*session.transcript])[0]) == ("ok", False)
