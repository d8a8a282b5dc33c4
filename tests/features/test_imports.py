"""F4: what other agents wrote down comes in as it was said, labelled by code, fit for every provider."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.core.errors import Corrupt, StoreError
from hone.core.jobs import Look
from hone.core.messages import Message, Role, Text, Thinking, ToolCall
from hone.core.messages import user as words
from hone.core.ports import Header, StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Node, Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import visible
from hone.features.imports import conversation as found
from hone.features.imports import hermes
from hone.features.imports.commands import NAMES
from hone.features.imports.conversation import Conversation, ImportReport, RawMessage, Row, typed, voice
from hone.features.imports.hermes import conversations
from hone.features.imports.pairing import CUT, LONGEST, LOST, UNANSWERED, UNASKED, paired
from hone.features.imports.plan import ROOM, ImportState, bring, carry, fitted, prefix, survey
from hone.features.imports.sources import LINES, SOURCES, rows, source_files
from hone.models.anthropic import AnthropicMessages
from hone.models.endpoint import Endpoint
from hone.models.http import Http
from hone.models.openai import OpenAIChat
from tests.conftest import Figures, Tier
from tests.core.test_visible import SCRIPTS, invisibles
from tests.doubles.requests import problems
from tests.features import others
from tests.reference.sessions import InMemorySessions
from tests.rig import faults

OWNER, AGENT, FOREIGN = Trust.OWNER, Trust.AGENT, Trust.FOREIGN
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Made = Callable[..., list[dict[str, Any]]]
FOUNT: Mapping[str, Made] = {"claude-code": others.claude, "openai": others.openai, "codex": others.codex}


def talks(
    source: str, data: bytes, report: ImportReport | None = None, name: str = "file"
) -> list[Conversation]:
    report = report or ImportReport()
    return list(LINES[source][0](rows(BytesIO(data), name, report), name, report))


def imported(source: str, made: Sequence[Row], report: ImportReport | None = None) -> StoredSession:
    report = report or ImportReport()
    (talk,) = talks(source, others.lines(made), report)
    each = fitted(source, talk, report, NOON, foreign=False)
    assert each
    return each


def outline(each: StoredSession) -> list[tuple[Role, str, Trust]]:
    shown = []
    for node in each.transcript.nodes:
        message = node.message
        text = message.result.text if message.result else message.text
        calls = "".join(f" [{call.name} {call.arguments}]" for call in message.calls)
        shown.append((message.role, f"{text}{calls}".strip(), node.trust))
    return shown


USER, HE, TOOL = Role.USER, Role.ASSISTANT, Role.TOOL
BROUGHT = f"{others.OUTPUT} [redacted: Anthropic key]"
END = [(HE, "Both pass (0).", FOREIGN), (USER, others.RULE, OWNER), (HE, "Fine.", FOREIGN)]
FIRST = (USER, f"{others.ASKED} (0)", OWNER)
EXPECTED = {
    "claude-code": [
        FIRST,
        (HE, 'I run them. [Bash {"command":"pytest"}] [Read {"file_path":"a.py"}]', AGENT),
        (TOOL, BROUGHT, FOREIGN),
        (TOOL, "no such file", FOREIGN),
    ],
    "openai": [FIRST, (HE, '[shell {"command":"pytest"}]', AGENT), (TOOL, BROUGHT, FOREIGN)],
    "codex": [
        FIRST,
        (HE, '[shell {"command":["pytest"]}] [apply_patch {"input":"*** Begin Patch"}]', AGENT),
        (TOOL, BROUGHT, FOREIGN),
        (TOOL, "done", FOREIGN),
    ],
}
LEFT = {
    "claude-code": {found.NOTES: 2, found.HELPERS: 1},
    "openai": {found.INSTRUCTIONS: 1},
    "codex": {found.INSTRUCTIONS: 1, found.NOTES: 2},
}


# What is read


@pytest.mark.parametrize("source", LINES)
def test_a_talk_is_read_as_it_was_had_with_labels_that_code_has_set(source: str) -> None:
    report = ImportReport()
    each = imported(source, FOUNT[source](), report)
    assert outline(each) == [*EXPECTED[source], *END]
    assert +report.left == LEFT[source]
    assert (each.prefix.system, each.prefix.tools, each.prefix.model) == ("", (), f"imported/{source}")
    assert "Obey" not in str(each.transcript)
    if source != "openai":
        assert each.header.folder == "/work/parser"
        assert each.header.created.year == 2025


def test_a_failed_command_and_the_title_come_along() -> None:
    each = imported("codex", others.codex())
    assert [node.message.result.failed for node in each.transcript.nodes if node.message.result] == [
        True,
        False,
    ]
    assert imported("claude-code", others.claude()).header.title == "Tests of the parser"


def test_what_nobody_vouches_for_is_foreign_as_a_whole_and_names_no_folder() -> None:
    (talk,) = talks("claude-code", others.lines(others.claude()))
    each = fitted("claude-code", talk, ImportReport(), NOON, foreign=True)
    assert each
    assert {node.trust for node in each.transcript.nodes} == {FOREIGN}
    assert each.header.folder == ""


@pytest.mark.parametrize(
    "text",
    [
        "<system-reminder>x</system-reminder>",
        "<command-name>/x</command-name>\n<command-args>y</command-args>",
        "<local-command-stdout>rm -rf</local-command-stdout>",
        "<bash-input>ls</bash-input><bash-stdout>You must …</bash-stdout>",
        "<ide_selection>obey</ide_selection>",
        "<environment_context>\n<cwd>/x</cwd>\n</environment_context>",
        "<user_instructions>obey",
        "<INSTRUCTIONS>\nobey\n</INSTRUCTIONS>",
        "# AGENTS.md instructions for /x\n\nobey",
        "[Request interrupted by user for tool use]",
    ],
)
def test_what_the_program_wrote_under_the_users_name_is_not_the_users(text: str) -> None:
    assert typed(text) == ""
    assert typed(f"{text}\nMine.") in ("Mine.", "")
    assert typed(f"Mine. {text}").startswith("Mine.")


def test_a_summary_and_a_message_of_another_origin_are_foreign() -> None:
    made = others.claude()
    made[-2]["isCompactSummary"] = True
    made[3]["origin"] = {"kind": "channel"}
    labels = {text: trust for _, text, trust in outline(imported("claude-code", made))}
    assert (labels[f"{others.ASKED} (0)"], labels[others.RULE]) == (FOREIGN, FOREIGN)
    assert voice("This session is being continued from a previous conversation that ran out.") is FOREIGN
    assert voice("This session was good.") is OWNER


def test_an_unclosed_mark_a_million_times_takes_no_longer_than_it_is_long() -> None:
    assert typed("<skill>" * 200_000) == ""
    assert typed("a" + "<skill></skill>" * 100_000 + "b") == "ab"


def test_lines_of_another_session_and_lines_that_stand_twice_are_told_apart() -> None:
    first, second = others.claude("one"), others.claude("two")
    report = ImportReport()
    found_talks = talks("claude-code", others.lines([*first, *first, *second]), report)
    assert [talk.own for talk in found_talks] == ["one", "two"]
    assert report.left[found.REPEATED] == 10
    alone = talks("claude-code", others.lines(first))
    assert [raw.message for raw in found_talks[0].messages] == [raw.message for raw in alone[0].messages]


def test_a_conversation_a_line_is_named_by_its_id_or_by_what_is_said_in_it() -> None:
    made = others.openai()
    named, plain = {"id": "a1", "messages": made}, {"messages": made}
    found_talks = talks("openai", others.lines([named, plain, plain, {"messages": made[:3]}]))
    own = [talk.own for talk in found_talks]
    assert own[0] == "a1"
    assert own[1] == own[2] != own[3]
    assert [talk.own for talk in talks("openai", others.lines([plain]), name="else")] == [own[1]]


def test_the_older_forms_of_codex_and_of_the_chat_endpoint_are_read() -> None:
    items: list[Row] = [row.get("payload", row) for row in others.codex() if row["type"] == "response_item"]
    old: list[Row] = [{"id": "old", "timestamp": "2025-05-01T00:00:00Z", "instructions": "Obey."}, *items]
    old.append({"record_type": "state"})
    each = imported("codex", old)
    assert outline(each) == [*EXPECTED["codex"], *END]
    calls: list[Row] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "2"},
    ]
    assert [text for _, text, _ in outline(imported("openai", calls))] == ["x", "[f {}]", "1", "[f {}]", "2"]


def test_a_helpers_rollout_is_left_out() -> None:
    made = others.codex()
    made[0]["payload"]["source"] = {"subagent": "review"}
    report = ImportReport()
    assert talks("codex", others.lines(made), report) == []
    assert report.left[found.HELPERS] == 9


# The database of Hermes


def test_the_database_of_hermes_gives_who_typed_where(tmp_path: Path) -> None:
    home = others.hermes(tmp_path / "h")
    report = ImportReport()
    own, gateway = conversations(home / "state.db", report)
    assert (own.own, own.title, own.folder) == ("20251001_a", "Parser", "/work/parser")
    assert report.left[found.HELPERS] == 6
    for talk, label in ((own, OWNER), (gateway, FOREIGN)):
        each = fitted("hermes", talk, report, NOON, foreign=False)
        assert each
        shown = [*EXPECTED["openai"], *END]
        assert [row[:2] for row in outline(each)] == [row[:2] for row in shown]
        assert {trust for role, _, trust in outline(each) if role is USER} == {label}


def test_a_row_of_hermes_that_was_taken_back_repeated_or_written_by_the_program_is_known_as_such(
    tmp_path: Path,
) -> None:
    talk = others.stored("s")
    row = {"session_id": "s", "timestamp": 1.8e9}
    extra = [talk[0], {**row, "role": "user", "content": "oops", "active": 0}]
    extra += [{**row, "role": "user", "content": "[CONTEXT COMPACTION] so far …"}]
    others.state(tmp_path / "state.db", {"s": {}}, [*talk, *extra])
    report = ImportReport()
    (read,) = conversations(tmp_path / "state.db", report)
    assert (report.left[hermes.WITHDRAWN], report.left[found.REPEATED]) == (1, 1)
    assert [(raw.message.text, raw.trust) for raw in read.messages][-1] == (
        "[CONTEXT COMPACTION] so far …",
        FOREIGN,
    )


def test_a_child_that_the_user_did_not_go_on_with_speaks_for_nobody(tmp_path: Path) -> None:
    sessions: dict[str, dict[str, Any]] = {
        "a": {"end_reason": "compression"},
        "b": {"parent_session_id": "a", "started_at": 1.8e9},
        "c": {"parent_session_id": "b", "started_at": 1.9e9},
    }
    others.state(tmp_path / "state.db", sessions, [row for id in sessions for row in others.stored(id)])
    labels = [talk.messages[0].trust for talk in conversations(tmp_path / "state.db", ImportReport())]
    assert labels == [OWNER, OWNER, FOREIGN]


def test_session_files_of_hermes_come_in_unless_the_database_has_them(tmp_path: Path) -> None:
    home = others.hermes(tmp_path / "h")
    files = home / "sessions"
    files.mkdir()
    for id, platform in (("20251001_a", "cli"), ("20240101_x", "cli"), ("20240101_y", "slack")):
        log = {"session_id": id, "platform": platform, "session_start": "2024-01-01T00:00:00"}
        (files / f"session_{id}.json").write_text(json.dumps({**log, "messages": others.openai()}))
    (files / "sessions.json").write_text('{"agent:main": {"session_id": "x"}}')
    (files / "broken.json").write_text("{")
    (files / "20240102_z.jsonl").write_bytes(others.lines([{"role": "session_meta"}, *others.openai()]))
    report = ImportReport()
    there = [talk for source_file in source_files("hermes", home) for talk in source_file.read(report)]
    voices = {talk.own: talk.messages[0].trust for talk in there}
    assert voices == {
        "20251001_a": OWNER,
        "20251001_b": FOREIGN,
        "20240101_x": OWNER,
        "20240101_y": FOREIGN,
        "20240102_z": FOREIGN,
    }
    assert len(there) == 5
    assert (report.malformed, report.left[found.REPEATED]) == (1, 6)


def test_entries_stand_between_section_signs_alone_on_their_lines() -> None:
    assert hermes.entries("\n§\n".join([*others.MEMORY, others.MEMORY[0]])) == list(others.MEMORY)
    assert hermes.entries("§\n\n§\n") == []


# What every provider takes

ids = st.sampled_from(["a", "b", "c", "", "call_1_0", "a b", "x" * 50])
arguments = st.sampled_from(["{}", "", "[]", '{"a":1}', "{", '{"a":"\\u200b"}', '{"a":NaN}', "[" * 2000])
calls = st.builds(ToolCall, ids, st.sampled_from(["run", "", "r n", "x" * 70]), arguments)
spoken = st.sampled_from(["yes", " ", "no\u202e"])


@st.composite
def raw_messages(draw: st.DrawFn) -> RawMessage:
    kind = draw(st.integers(0, 4))
    if kind == 0:
        return found.user(draw(spoken), draw(st.sampled_from([OWNER, FOREIGN])), None)
    if kind <= 2:
        return found.result(draw(ids), draw(spoken), None)
    parts = [Text(draw(spoken))] if draw(st.booleans()) else []
    thoughts = [Thinking("hm")] if draw(st.booleans()) else []
    return found.assistant([*thoughts, *parts, *draw(st.lists(calls, max_size=2))], None)


def sendable(made: Sequence[RawMessage]) -> list[Message]:
    """As it would be sent if somebody went on with it."""
    line = Transcript("root")
    for raw in made:
        line = line.then(raw.message, raw.trust, NOON)
    return [*line, *line.closing("it was brought in"), words("and now?")]


OPENAI = OpenAIChat(Http(ManualClock()), ManualClock(), Endpoint("openai", "http://x", {}))
ANTHROPIC = AnthropicMessages(Http(ManualClock()), ManualClock(), Endpoint("anthropic", "http://x", {}))


@given(st.lists(raw_messages(), max_size=14))
def test_whatever_was_written_down_becomes_a_history_that_every_provider_takes(
    given_: list[RawMessage],
) -> None:
    made = paired(given_, ImportReport())
    if not made:
        return
    messages = sendable(made)
    assert faults(messages[:-1]) == []
    base = Prefix("openai/m", "")
    line = Transcript(base.digest)
    for message in messages:
        line = line.then(message, FOREIGN, NOON)
    assert problems("openai", OPENAI.body(base, line)) == []
    assert problems("anthropic", ANTHROPIC.body(base, line)) == []


def test_a_result_finds_its_call_over_what_was_said_between_and_the_rest_is_counted() -> None:
    report = ImportReport()
    call = ToolCall("a", "run", "{}")
    given_ = [
        found.assistant([call], None),
        found.user("stop", OWNER, None),
        found.result("a", "x" * (LONGEST + 5), None),
        found.result("a", "again", None),
        found.assistant([replace(call, id="b")], None),
        found.user("well?", OWNER, None),
        found.assistant([replace(call, id="c")], None),
    ]
    made = [raw.message for raw in paired(given_, report)]
    assert [message.role for message in made] == [USER, HE, TOOL, USER, HE, TOOL, USER, HE]
    assert made[0].text == LOST
    assert made[2].result
    assert made[2].result.text.endswith("[… 5 more characters were not brought in]")
    assert made[5].result
    assert made[5].result.failed
    assert +report.left == {UNASKED: 1, UNANSWERED: 1, CUT: 1}


def test_results_that_come_in_another_order_than_their_calls_are_all_kept() -> None:
    report = ImportReport()
    given_ = [
        found.assistant([ToolCall("a", "run", "{}")], None),
        found.user("and?", OWNER, None),
        found.assistant([ToolCall("b", "run", "{}")], None),
        found.result("b", "second", None),
        found.result("a", "first", None),
    ]
    made = [raw.message for raw in paired([found.user("go", OWNER, None), *given_], report)]
    assert [message.result.text for message in made if message.result] == ["first", "second"]
    assert [message.role for message in made] == [USER, HE, TOOL, USER, HE, TOOL]
    assert +report.left == {}


def test_many_calls_without_results_take_no_longer_than_they_are_long() -> None:
    call = ToolCall("a", "run", "{}")
    given_ = [
        raw for _ in range(5_000) for raw in (found.assistant([call], None), found.user("x", OWNER, None))
    ]
    assert len(paired(given_, ImportReport())) == 1 + 3 * 5_000


# What hides


@pytest.mark.parametrize("source", LINES)
def test_nothing_hidden_comes_in_and_no_script_is_harmed(source: str, figures: Figures) -> None:
    hostile = "".join(f"a{letter}b" for letter in invisibles())
    text = json.dumps(f"{hostile} \ud83d {''.join(SCRIPTS)}")[1:-1]
    data = others.lines(FOUNT[source]()).decode()
    for word in (others.ASKED, others.OUTPUT, "Both pass", "pytest"):
        data = data.replace(
            word, text.replace("\\", "\\\\") if word == "pytest" and source == "openai" else text
        )
    (talk,) = talks(source, data.encode())
    each = fitted(source, talk, ImportReport(), NOON, foreign=False)
    assert each
    messages = [node.message for node in each.transcript.nodes]
    shown = [message.result.text if message.result else message.text for message in messages]
    shown += [str(json.loads(call.arguments)) for message in messages for call in message.calls]
    seen = [text for text in shown if "".join(SCRIPTS) in text]
    assert len(seen) >= 3
    assert [text for text in shown if visible(text) != text] == []
    figures(f"{source}: {len(invisibles()):,} hidden code points in {len(seen)} places, 0 got in")


# What grows


@pytest.mark.parametrize("source", LINES)
async def test_a_file_read_at_any_moment_and_again_later_gives_what_one_reading_gives(source: str) -> None:
    made = FOUNT[source](turns=2)
    whole = imported(source, made)
    if source == "openai":
        made = [{"session_id": "one", **row} for row in made]
        whole = imported(source, made)
    for cut in range(1, len(made)):
        store = InMemorySessions()
        standings = []
        for part in (made[:cut], made, made):
            for talk in talks(source, others.lines(part)):
                each = fitted(source, talk, ImportReport(), NOON, foreign=False)
                standings += [await carry(store, each)] if each else []
        stored = await store.load(whole.header.id)
        assert [node.digest for node in stored.transcript.nodes] == [
            node.digest for node in whole.transcript.nodes
        ]
        assert standings[-1] is ImportState.SAME
        assert ImportState.OTHER not in standings


async def test_what_was_gone_on_with_here_is_not_touched_and_a_broken_copy_replaces_nothing() -> None:
    made = others.codex(turns=2)
    each, store = imported("codex", made), InMemorySessions()
    assert await carry(store, each) is ImportState.NEW
    assert await carry(store, imported("codex", [*made[:6], *made[9:]])) is ImportState.OTHER
    assert await carry(store, imported("codex", made[:-1])) is ImportState.SAME
    moved = each.transcript.rooted(prefix("openai").digest)
    await store.move(each.header.id, prefix("openai"), moved)
    assert await carry(store, imported("codex", made)) is ImportState.SAME
    later = imported("codex", others.codex(turns=3))
    assert await carry(store, later) is ImportState.LONGER
    here = (await store.load(each.header.id)).transcript
    assert (here.root, len(here)) == (moved.root, len(later.transcript))
    await store.append(each.header.id, here.then(words("mine"), OWNER, NOON).nodes[-1:])
    assert await carry(store, imported("codex", others.codex(turns=4))) is ImportState.OTHER
    assert (await store.load(each.header.id)).transcript.nodes[-1].message.text == "mine"


# What there is no room for


@pytest.mark.parametrize("room", [0, 3_000, ROOM])
async def test_what_was_not_kept_is_read_again_and_left_if_it_has_changed(room: int, tmp_path: Path) -> None:
    for number in range(4):
        made = others.lines(others.claude(f"s{number}", turns=1 + number))
        (tmp_path / f"{number}.jsonl").write_bytes(made)
    there = source_files("claude-code", tmp_path)
    reader, store = InMemorySessions(), InMemorySessions()
    whole = await survey(reader, "claude-code", there, int, foreign=False)
    assert await bring(reader, "claude-code", whole, int, foreign=False) == (4, [])
    seen = await survey(store, "claude-code", there, int, foreign=False, room=room)
    assert (len(seen.kept), len(seen.rest)) == {0: (0, 4), 3_000: (2, 2), ROOM: (4, 0)}[room]
    (tmp_path / "3.jsonl").write_bytes(others.lines(others.claude("s3", turns=9)))
    told: list[int] = []
    expected = 4 if room == ROOM else 3
    assert await bring(store, "claude-code", seen, told.append, foreign=False) == (expected, [])
    assert sum(told) == 7 * (1 + 2 + 3) + (28 if room == ROOM else 0)
    for each in await store.list():
        ours, theirs = await store.load(each.header.id), await reader.load(each.header.id)
        assert ours.transcript.head == theirs.transcript.head


class Filling(InMemorySessions):
    """Its disk is full after so many sessions."""

    room = 0

    async def start(
        self, header: Header, prefix: Prefix, nodes: Sequence[Node], look: Look | None = None
    ) -> None:
        if len(await self.list(None)) >= self.room:
            raise StoreError("The disk is full; this step changed nothing.")
        await super().start(header, prefix, nodes, look)


@pytest.mark.parametrize("room", [0, 1, 3])
async def test_an_import_that_breaks_off_says_how_much_is_stored(room: int, tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.jsonl").write_bytes(others.lines(others.claude(f"s{number}", turns=1)))
    store, there = Filling(), source_files("claude-code", tmp_path)
    store.room = room
    plan = await survey(store, "claude-code", there, int, foreign=False)
    count = "1 conversation was" if room == 1 else f"{room} conversations were"
    with pytest.raises(StoreError, match=f"The disk is full; .* {count} stored before"):
        await bring(store, "claude-code", plan, int, foreign=False)
    assert len(await store.list(None)) == room


# What is broken


def broken(data: bytes, random: Random) -> bytes:
    """Cut off, overwritten, torn apart, or with a value in it that does not belong there."""
    match random.randrange(5):
        case 0:
            return data[: random.randrange(len(data))]
        case 1:
            at = random.randrange(len(data))
            return data[:at] + random.randbytes(random.randrange(1, 40)) + data[at:]
        case 2:
            kept = data.split(b"\n")
            random.shuffle(kept)
            return b"\n".join(kept[random.randrange(len(kept)) :])
        case 3:
            start = random.randrange(len(data))
            return data[:start] + data[start + random.randrange(200) :]
    made = [json.loads(line) for line in data.splitlines()]
    for _ in range(random.randrange(1, 6)):
        twist(random.choice(made), random)
    return others.lines(made)


ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1e308,
    "",
    "\ud800",
    [],
    {},
    [[]],
    [None],
    {"type": 1},
    [{"text": 1}],
    "§",
)


def twist(value: Any, random: Random) -> None:
    """Somewhere inside, another value."""
    while isinstance(value, dict | list) and value:
        key = random.choice(list(value)) if isinstance(value, dict) else random.randrange(len(value))
        if not isinstance(value[key], dict | list) or random.random() < 0.3:
            value[key] = deepcopy(random.choice(ODD))
            return
        value = value[key]


def test_no_broken_file_raises_and_what_is_read_of_it_is_fit(tier: Tier, figures: Figures) -> None:
    tried, malformed, kept = 0, 0, 0
    whole = {source: others.lines(FOUNT[source](turns=2)) for source in LINES}
    conversation = others.lines([{"id": "x", "messages": others.openai()}])
    for draw in tier.draws(short=1_500, full=100_000):
        tried, random = tried + 1, draw.random
        source = random.choice(list(LINES))
        data = broken(random.choice([whole[source], conversation]), random)
        report = ImportReport()
        for talk in talks(source, data, report):
            each = fitted(source, talk, report, NOON, foreign=False)
            if each:
                kept += len(each.transcript)
                made = [RawMessage(node.message, node.trust) for node in each.transcript.nodes]
                assert faults(sendable(made)[:-1]) == []
        malformed += report.malformed
    assert malformed > tried // 10
    note = f"broken files, {malformed:,} lines not readable, {kept:,} messages kept, 0 exceptions"
    figures.tally(tried, note=note)


def test_no_broken_database_raises_anything_but_a_sentence(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    home = others.genuine(tmp_path / "h", "hermes")
    data, path = (home / "state.db").read_bytes(), tmp_path / "broken.db"
    tried, refused = 0, 0
    for draw in tier.draws(short=150, full=5_000):
        tried += 1
        path.write_bytes(broken_bytes(data, draw.random))
        try:
            for talk in conversations(path, ImportReport()):
                fitted("hermes", talk, ImportReport(), NOON, foreign=False)
        except StoreError:
            refused += 1
        for beside in tmp_path.glob("broken.db-*"):
            beside.unlink()
    assert tried < 100 or 0 < refused < tried
    figures.tally(tried, note=f"broken databases, {refused:,} refused with a sentence, 0 exceptions")


def broken_bytes(data: bytes, random: Random) -> bytes:
    made = bytearray(data)
    for _ in range(random.randrange(1, 30)):
        made[random.randrange(len(made))] = random.randrange(256)
    return bytes(made[: random.randrange(len(made) // 2, len(made))] if random.random() < 0.3 else made)


def test_odd_rows_of_a_database_are_counted_and_the_others_taken(tmp_path: Path) -> None:
    odd: list[dict[str, Any]] = [
        {"role": "user", "content": b"\xff"},
        {"role": "user", "content": "\x00json:{"},
        {"role": "assistant", "tool_calls": "[1]"},
        {"role": "wizard", "content": "x"},
        {"role": "tool", "tool_call_id": 5, "content": "x"},
    ]
    made = [{"session_id": "s", **row} for row in odd] + others.stored("s")
    others.state(tmp_path / "state.db", {"s": {}}, made)
    report = ImportReport()
    (talk,) = conversations(tmp_path / "state.db", report)
    each = fitted("hermes", talk, report, NOON, foreign=False)
    assert each
    assert outline(each) == [*EXPECTED["openai"], *END]
    assert report.malformed == 2
    with pytest.raises(Corrupt):
        list(conversations(tmp_path / "nothing.db", ImportReport()))


def test_each_source_is_known_to_the_command() -> None:
    assert sorted(NAMES) == sorted(SOURCES)


def test_times_in_every_form_are_read_and_nonsense_is_none() -> None:
    same = datetime(2025, 10, 29, tzinfo=UTC)
    forms: list[object] = ["2025-10-29T00:00:00Z", "2025-10-29", same.timestamp(), same.timestamp() * 1_000]
    assert {found.moment(each) for each in forms} == {same}
    absurd: tuple[object, ...] = (None, True, "soon", 1e300, float("nan"), -(10**400), [], "9999-99-99")
    assert [found.moment(each) for each in absurd] == [None] * len(absurd)
