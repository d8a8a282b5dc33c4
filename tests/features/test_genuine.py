"""F4: transcripts that the other agents themselves wrote come in whole, in order, with the right labels."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO
from itertools import takewhile
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.clock import ManualClock
from hone.core.messages import Role
from hone.core.ports import StoredSession
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.imports import conversation as found
from hone.features.imports import hermes
from hone.features.imports.conversation import ImportReport
from hone.features.imports.plan import ImportState, carry, fitted
from hone.features.imports.sources import LINES, rows, source_files
from hone.models.anthropic import AnthropicMessages
from hone.models.endpoint import Endpoint
from hone.models.http import Http
from hone.models.openai import OpenAIChat
from tests.doubles.requests import problems
from tests.features import others
from tests.reference.sessions import InMemorySessions
from tests.rig import faults

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LOOK, MEND = "In parser.py: which tests fail, and why?", "Good. Please mend it."
RULE = "Always run the tests with unittest before you say you are done."
SLOW, ALSO, AGAIN = "Take your time please", "And also: and again", "Take your time once more"
SUMMARY = "(a summary)"
TEMPLATE = """\
---
description: Look at one file
---
Review the file $ARGUMENTS as a strict colleague would, and say in one sentence whether it is fine.
"""
EXPANDED = TEMPLATE.splitlines()[-1].replace("$ARGUMENTS", '"parser.py please"')
TYPED = {
    "claude-code": [
        [LOOK, MEND, "Ask a helper to count", RULE, SUMMARY, "What did we do so far?"],
        ["Please look at @parser.py", SLOW, ALSO, AGAIN, "What did we do?"],
    ],
    "codex": [
        [LOOK, MEND, RULE],
        ["Please look at __pycache__/parser.cpython-311.pyc", SLOW, ALSO, AGAIN, "What did we do?"],
    ],
    "hermes": [
        [LOOK, MEND, RULE],
        [
            *("And again please", "Keep in mind how the tests run", SLOW, "What did we do?", SUMMARY),
            "What did we do so far?/exit",
        ],
    ],
    "openai": [[LOOK, MEND, RULE], ["And again please", "What did we do?"]],
    "opencode": [[f'"{LOOK}"', f'"{MEND}"', f'"{RULE}"'], [EXPANDED, '"What did we do?"']],
}
"""What the user typed, a list for each conversation."""
FAILED = {"claude-code": 2, "codex": 2, "hermes": 2, "openai": 0, "opencode": 1}
"""Commands that failed or were interrupted. OpenAI's messages do not say."""
LEFT: dict[str, dict[str, int]] = {
    "claude-code": {found.NOTES: 55, found.HELPERS: 5},
    "codex": {found.INSTRUCTIONS: 2, found.NOTES: 4},
    "hermes": {found.REPEATED: 13, hermes.WITHDRAWN: 2},
    "openai": {found.INSTRUCTIONS: 3},
    "opencode": {found.NOTES: 2, found.MEDIA: 1},
}


def imports(source: str, path: Path, report: ImportReport) -> Iterator[StoredSession]:
    for source_file in source_files(source, path):
        for talk in source_file.read(report):
            each = fitted(source, talk, report, NOON, foreign=False)
            if each:
                yield each


def heard(each: StoredSession) -> list[str]:
    """What stands under the user's name. Only a summary is not the owner's."""
    said = [node for node in each.transcript.nodes if node.message.role is Role.USER]
    return [node.message.text if node.trust is Trust.OWNER else SUMMARY for node in said]


@pytest.mark.parametrize("source", TYPED)
def test_every_word_that_was_typed_is_there_once_in_order_and_the_owners(source: str, tmp_path: Path) -> None:
    report = ImportReport()
    there = list(imports(source, others.genuine(tmp_path / "there", source), report))
    talks = there[:2] if source == "openai" else there
    assert sorted(map(heard, talks)) == sorted(TYPED[source])
    assert +report.left == LEFT[source]
    assert report.malformed == 0
    results = [node.message.result for each in talks for node in each.transcript.nodes]
    assert sum(result.failed for result in results if result) == FAILED[source]
    assert sum("cat: missing.txt: No such file" in result.text for result in results if result) == 1
    if source != "openai":
        assert {each.header.folder for each in there} == {"/home/ana/parser"}
        assert {each.header.created.year for each in there} == {2026}


@pytest.mark.parametrize("source", TYPED)
def test_nothing_an_agent_says_after_something_foreign_is_better_than_that(
    source: str, tmp_path: Path
) -> None:
    for each in imports(source, others.genuine(tmp_path / "there", source), ImportReport()):
        nodes = each.transcript.nodes
        first = len(list(takewhile(lambda node: node.message.role is not Role.TOOL, nodes)))
        agents = [node.trust for node in nodes[first:] if node.message.role is Role.ASSISTANT]
        assert set(agents) == {Trust.FOREIGN}
        if heard(each)[0] == "Please look at @parser.py":  # the file itself is not taken over
            assert nodes[1].trust is Trust.FOREIGN


@pytest.mark.parametrize("source", TYPED)
def test_every_provider_takes_what_they_wrote(source: str, tmp_path: Path) -> None:
    clock = ManualClock()
    there = list(imports(source, others.genuine(tmp_path / "there", source), ImportReport()))
    assert len(there) >= 2
    for each in there:
        assert faults(list(each.transcript)) == []
        base = Prefix("openai/m", "")
        line = Transcript(base.digest)
        for node in each.transcript.nodes:
            line = line.then(node.message, node.trust, node.at)
        openai = OpenAIChat(Http(clock), clock, Endpoint("openai", "http://x", {}))
        anthropic = AnthropicMessages(Http(clock), clock, Endpoint("anthropic", "http://x", {}))
        assert problems("openai", openai.body(base, line)) == []
        assert problems("anthropic", anthropic.body(base, line)) == []


def test_what_a_template_wrote_is_foreign_and_what_was_typed_beside_it_is_the_owners(tmp_path: Path) -> None:
    project = tmp_path / "parser"
    (project / ".opencode" / "command").mkdir(parents=True)
    (project / ".opencode" / "command" / "check.md").write_text(TEMPLATE)
    there = others.genuine(tmp_path / "there", "opencode")
    with closing(apsw.Connection(str(there / "opencode.db"))) as connection:
        connection.execute("UPDATE session SET directory = ?", (str(project),))
    said = sorted(heard(each) for each in imports("opencode", there, ImportReport()))
    assert said == sorted([TYPED["opencode"][0], [SUMMARY, '"What did we do?"']])


def test_a_prompt_of_codex_is_recognized_and_one_that_is_nearly_all_hole_is_not(tmp_path: Path) -> None:
    there = others.genuine(tmp_path / "there", "codex")
    (there / "prompts").mkdir()
    (there / "prompts" / "which.md").write_text(
        "---\nargument-hint: FILE\n---\nIn $FILE: which tests fail,\nand why?"
    )
    (there / "prompts" / "any.md").write_text("Do $ARGUMENTS")
    said = [each for talk in imports("codex", there, ImportReport()) for each in heard(talk)]
    assert said.count(SUMMARY) == 1
    assert LOOK not in said
    assert {MEND, RULE, SLOW} <= set(said)


FILES = [(source, path) for source in LINES for path in sorted((others.GENUINE / source).rglob("*.jsonl"))]


def taken(source: str, path: Path, data: bytes, report: ImportReport) -> list[StoredSession]:
    talks = LINES[source][0](rows(BytesIO(data), path.name, report), path.stem, report)
    made = [fitted(source, talk, report, NOON, foreign=False) for talk in talks]
    return [each for each in made if each]


@pytest.mark.parametrize(("source", "path"), FILES, ids=lambda value: str(value)[-12:])
async def test_a_file_read_while_it_was_written_ends_as_one_reading_does(source: str, path: Path) -> None:
    """At each line, and cut in the middle of the next."""
    whole, report = path.read_bytes().splitlines(keepends=True), ImportReport()
    wanted = {each.header.id: each for each in taken(source, path, b"".join(whole), report)}
    stored = InMemorySessions()
    for cut in range(1, len(whole) + 1):
        part = b"".join(whole[:cut]) + (whole[cut][: len(whole[cut]) // 2] if cut < len(whole) else b"")
        report = ImportReport()
        for each in taken(source, path, part, report):
            if source != "openai":  # its conversations have no names that stay
                assert await carry(stored, each) is not ImportState.OTHER
        assert report.malformed == (cut < len(whole))
    for id, each in wanted.items():
        if source != "openai":
            transcript = (await stored.load(id)).transcript
            assert [node.digest for node in transcript.nodes] == [
                node.digest for node in each.transcript.nodes
            ]


# A law over what may have happened to them

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
several = st.lists(plain, max_size=2) | st.dictionaries(st.text(max_size=5), plain, max_size=2)
values = plain | several | st.lists(several, max_size=2)


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value inside."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def replaced(value: Any, path: tuple[Any, ...], other: Any) -> Any:
    if not path:
        return other
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], other)
    return copy


@st.composite
def damaged(draw: st.DrawFn, line: bytes) -> tuple[bytes, bool]:
    """A line that was cut, overwritten, or has another value somewhere; and whether it is still an object."""
    kind = draw(st.sampled_from(["cut", "garbage", "type", "list"]))
    if kind == "cut":
        return line[: draw(st.integers(1, len(line) - 1))], False
    if kind == "garbage":
        return draw(st.binary(min_size=1, max_size=30)).replace(b"\n", b"") + b"\xff\x00", False
    if kind == "list":
        return b"[" + line + b"]", False
    row = json.loads(line)
    path = draw(st.sampled_from(list(places(row))))
    return json.dumps(replaced(row, path, draw(values))).encode(), True


@given(st.data())
def test_a_damaged_line_costs_no_other_and_is_counted(data: st.DataObject) -> None:
    source, path = data.draw(st.sampled_from(FILES))
    whole = path.read_bytes().splitlines()
    hit = data.draw(st.sets(st.integers(0, len(whole) - 1), min_size=1, max_size=4))
    made = {number: data.draw(damaged(whole[number])) for number in hit}
    broken = sum(not readable for _, readable in made.values())
    lines = [made[number][0] if number in made else line for number, line in enumerate(whole)]
    report = ImportReport()
    there = taken(source, path, b"\n".join(lines), report)
    assert broken <= report.malformed <= len(hit)
    assert len(report.faults) == min(report.malformed, found.FAULTS)
    for each in there:
        assert faults([*each.transcript, *each.transcript.closing("x")]) == []
    if broken == len(hit):  # then it is as if those lines had never been there
        kept = b"\n".join(line for number, line in enumerate(whole) if number not in hit)
        alone = taken(source, path, kept, ImportReport())
        assert [each.transcript.head for each in there] == [each.transcript.head for each in alone]


def table(name: str) -> list[dict[str, Any]]:
    """A table of the database of Hermes."""
    with closing(apsw.Connection(":memory:")) as connection:
        connection.execute((others.GENUINE / "hermes" / "state.sql").read_text())
        listed = connection.execute(f"SELECT * FROM {name}")
        return [dict(zip((column[0] for column in listed.description), row, strict=True)) for row in listed]


SESSIONS, MESSAGES = table("sessions"), table("messages")
COLUMNS = sorted(set(MESSAGES[0]) - {"id", "session_id"})
cells = st.none() | st.integers() | st.floats() | st.text(max_size=20) | st.binary(max_size=20)


def remembered(messages: list[dict[str, Any]], report: ImportReport) -> dict[str, StoredSession | None]:
    def of(session: str) -> list[dict[str, Any]]:
        return [row for row in messages if row["session_id"] == session]

    talks = hermes.read(SESSIONS, of, report)
    return {talk.own: fitted("hermes", talk, report, NOON, foreign=False) for talk in talks}


def head(each: StoredSession | None) -> str:
    return each.transcript.head if each else ""


@given(st.data())
def test_a_damaged_row_of_a_database_costs_nothing_of_another_conversation(data: st.DataObject) -> None:
    hit = data.draw(st.sets(st.integers(0, len(MESSAGES) - 1), min_size=1, max_size=4))
    made = [dict(row) for row in MESSAGES]
    for number in hit:
        for name in data.draw(st.sets(st.sampled_from(COLUMNS), min_size=1)):
            made[number][name] = data.draw(cells)
    report = ImportReport()
    whole = remembered(MESSAGES, ImportReport())
    touched = {MESSAGES[number]["session_id"] for number in hit}
    for id, each in remembered(made, report).items():
        assert id in touched or head(each) == head(whole[id])
        assert each is None or faults([*each.transcript, *each.transcript.closing("x")]) == []
    assert report.malformed <= len(hit)
