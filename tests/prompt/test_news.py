"""B7: what has become known reaches a running conversation as one short note, apart from the user's words."""

import json
from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from hone.cli.listing import transcript
from hone.cli.render import Paint
from hone.core.ids import SessionId
from hone.core.knowledge import News
from hone.core.ledger import ChangeId
from hone.core.messages import Message, SystemNote, assistant, told, user
from hone.core.ports import Header, StoredSession
from hone.core.prefix import Prefix
from hone.core.secrets import redact
from hone.core.skill import ListedSkill
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.prompt.news import LIMIT, describe_news, find_known, headline
from hone.runtime.export import to_json, to_markdown

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = "sk-ant-api03-" + "aB3dE5fG7hJ9" * 7
entries = st.tuples(
    st.sampled_from(["memory", "user", "project"]), st.text(min_size=1, max_size=900).filter(str.strip)
)
skills = st.builds(
    ListedSkill, st.from_regex(r"[a-z]{1,20}", fullmatch=True), st.text(max_size=1_024), st.just("d")
)
all_news = st.builds(
    News,
    st.integers(1, 10**6).map(ChangeId),
    st.lists(entries, max_size=8).map(tuple),
    st.lists(entries, max_size=8).map(tuple),
    st.lists(skills, max_size=8).map(tuple),
    st.lists(st.from_regex(r"[a-z]{1,20}", fullmatch=True), max_size=8).map(tuple),
)


def test_no_news_is_no_note() -> None:
    assert describe_news(News(ChangeId(7))) is None


def test_a_note_tells_what_was_withdrawn_added_and_changed() -> None:
    note = describe_news(
        News(
            ChangeId(42),
            added=(("user", "likes green tea\nin the morning"), ("project", "uses uv")),
            removed=(("user", "likes coffee"),),
            skills=(ListedSkill("release-notes", "How to write\nrelease notes.", "d"),),
            gone=("old-way",),
        )
    )
    assert note == SystemNote(
        "# 5 changes to the journal and skills\n"
        "- About the user, no longer true: likes coffee\n"
        "- About the user, new: likes green tea\n"
        "  in the morning\n"
        "- About this project, new: uses uv\n"
        "- Skill old-way: removed\n"
        "- Skill release-notes, new or changed: How to write release notes.",
        upto=42,
    )
    assert headline(note) == "5 changes to the journal and skills"
    assert told(note) == f"<hone-note>\n{note.text}\n</hone-note>"


def test_more_than_fits_is_counted_and_what_is_withdrawn_is_told_first() -> None:
    added = tuple(("memory", f"fact {number} " + "x" * 100) for number in range(50))
    note = describe_news(
        News(ChangeId(1), added=added, removed=(("user", "likes coffee"), ("user", "y" * 2_000)))
    )
    assert note
    heading, first, *items, last = note.text.split("\n")
    assert heading == "# 52 changes to the journal and skills"
    assert first == "- About the user, no longer true: likes coffee"
    assert (
        last
        == f"- {52 - 1 - len(items)} more. `memory` (action list) and `skills_list` show the current state."
    )
    assert LIMIT - 300 < len(note.text) <= LIMIT


@given(all_news)
def test_a_note_is_short_and_its_lines_are_those_that_hone_made(given: News) -> None:
    note = describe_news(given)
    assert (note is None) == (not given)
    if note is None:
        return
    heading, *lines = note.text.split("\n")
    changes = len(given.added) + len(given.removed) + len(given.skills) + len(given.gone)
    assert heading.split()[1] == str(changes)
    assert len(note.text) <= LIMIT
    assert all(line == "" or line.startswith(("- ", "  ")) for line in lines)
    shown = sum(line.startswith("- ") for line in lines)
    assert shown == changes or lines[-1].startswith(f"- {changes - shown + 1} more; ")
    assert note.upto == given.upto


@given(st.lists(st.integers(0, 5), min_size=1, max_size=8), st.data())
def test_what_was_told_in_a_part_that_was_cut_out_counts_as_not_told(
    steps: list[int], data: st.DataObject
) -> None:
    first, *later = [sum(steps[: end + 1]) for end in range(len(steps))]
    told_of = [
        SystemNote("", first, first),
        *(SystemNote("x", upto, since) for since, upto in zip([first, *later], later, strict=False)),
    ]
    messages = [message for note in told_of for message in (user(note, "hi"), assistant("ho"), user("so"))]
    assert find_known(messages) == told_of[-1].upto
    start = data.draw(st.integers(1, len(told_of)))
    end = data.draw(st.integers(start, len(told_of)))
    lost = [note for note in told_of[start:end] if note.since < note.upto]
    left = [user(note, "hi") for note in (*told_of[:start], *told_of[end:])]
    assert find_known(left) == (lost[0].since if lost else told_of[-1].upto)
    again = user(SystemNote("x", 99, find_known(left) or 0), "hi")
    assert find_known([*left, again]) == 99


def test_a_conversation_without_notes_was_told_of_nothing() -> None:
    assert find_known([user("hi"), assistant("ho")]) is None


def stored(*messages: Message) -> StoredSession:
    prefix = Prefix("openai/scripted", "You are a test.")
    chain = Transcript(prefix.digest)
    for message in messages:
        chain = chain.then(message, Trust.OWNER, NOON)
    return StoredSession(Header(SessionId("abc123"), NOON, folder="/work"), prefix, chain)


NOTE = SystemNote(
    f"# 1 change to the journal and skills\n- About the user, new: ``` likes tea {KEY}\x1b[2J", 3
)


def test_a_stored_conversation_shows_notes_apart_from_the_users_words() -> None:
    whole = stored(user(NOTE, "tea?"), assistant("Yes."), user(SystemNote("", 4), "sure?"))
    short = list(transcript(whole, Paint()))
    told_at = short.index("  (Hone told the model: 1 change to the journal and skills)")
    assert short[told_at + 1] == "  tea?"
    assert not any("likes tea" in line for line in short)
    assert sum("Hone told" in line for line in short) == 1
    full = "\n".join(transcript(whole, Paint(), full=True))
    assert f"likes tea {KEY}\\x1b[2J" in full


def test_an_export_marks_notes_and_takes_secrets_out_of_them() -> None:
    whole = stored(user(NOTE, "tea?"), user(SystemNote("", 4), "sure?"))
    first, second = json.loads(to_json(whole, redact))["messages"]
    assert [part["kind"] for part in first["parts"]] == ["note", "text"]
    assert first["parts"][0]["upto"] == 3
    assert second["parts"][0] == {"kind": "note", "text": "", "upto": 4, "since": 0}
    markdown = to_markdown(whole, redact)
    assert markdown.count("Hone told the model:\n\n````\n# 1 change to the journal and skills\n") == 1
    assert KEY not in to_json(whole, redact) + markdown
