"""SKILL.md: what is refused and why, then that a second reader agrees with whatever we accept."""

from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.skill import DOCUMENT
from hone.knowledge.skills import document
from hone.knowledge.skills.document import parse, validate, write_document

# The reference validator has no types.
parse_frontmatter = import_module("skills_ref.parser").parse_frontmatter
validate_metadata = import_module("skills_ref.validator").validate_metadata

GOOD = "---\nname: release-notes\ndescription: Write them.\n---\n\nSteps.\n"


def front(*lines: str) -> str:
    return "\n".join(["---", *lines, "---", "", "Steps."])


def second_opinion(text: str, folder: str) -> tuple[list[str], dict[str, object]]:
    """As the reference validator reads the file from the disk, line ends made one."""
    fields, _ = parse_frontmatter(text.replace("\r\n", "\n").replace("\r", "\n"))
    return validate_metadata(fields, Path(folder)), fields


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "begin with a line of three hyphens"),
        ("# Title\n", "begin with a line of three hyphens"),
        ("\ufeff" + GOOD, "begin with a line of three hyphens"),
        ("---\nname: a\ndescription: b\n", "has no end"),
        (front("name: a", "description: b --- c"), "three hyphens in a row"),
        (front("description: b"), "`name: …`"),
        (front("name: a"), "`description: …`"),
        (front("name: a", "description: '  '"), "`description: …`"),
        (front("name: a", "description:", "  - b"), "`description: …`"),
        (front("name: Release", "description: b"), "cannot be the name"),
        (front("name: a--b", "description: b"), "cannot be the name"),
        (front("name: a", f"description: {'x' * 1025}"), "1,025 characters"),
        (front("name: a", "description: b", "author: me"), "may not have 'author'"),
        (front("name: a", "name: b", "description: c"), "twice"),
        (front("name: a", "description: 'b"), "not valid YAML"),
        (front("name: a", "description: b", "metadata:", "  x:", "    - y"), "metadata must be"),
        (front("name: a", "description: b", "metadata: y"), "metadata must be"),
        (front("name: a", "description: !!str b"), "tags, anchors"),
        (front("name: &x a", "description: *x"), "tags, anchors"),
        (front("name: a", "description: b", f"compatibility: {'x' * 501}"), "compatibility"),
        (front("- name", "- description"), "lines of `key: value`"),
        (front("name: a", "description: b", "metadata:", "  " + "- " * 40_000), "nested too deeply"),
        (front("name: a", "description: b", "metadata: " + "[" * 40_000), "nested too deeply"),
        (front("name: a", "description: b", "metadata:", "  " + "? " * 40_000), "nested too deeply"),
        (front("name: a", "description: <<"), "put it in quotes"),
        (front("name: a", "description: b\tc"), "a tab"),
        (front("name: a", "description: b\x85c"), "control character"),
        ("---\nname: a\ndescription: b\n---\n \n", "no body"),
        (GOOD + "x" * 100_000, "100,000"),
    ],
    ids=lambda value: value[:40],
)
def test_what_is_not_a_skill_document_is_refused_with_advice(text: str, reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        parse(text)
    assert reason in str(refusal.value)


@pytest.mark.parametrize(
    ("name", "files", "reason"),
    [
        ("release-notes", {}, "has no SKILL.md"),
        ("release-notes", {DOCUMENT: b"\xff\xfe"}, "UTF-8"),
        ("other-notes", {DOCUMENT: GOOD.encode()}, "write `name: other-notes`"),
        ("Other", {DOCUMENT: GOOD.encode()}, "cannot be the name"),
        ("release-notes", {DOCUMENT: GOOD.encode(), "../notes.md": b""}, "begin with a dot"),
        ("release-notes", {DOCUMENT: GOOD.encode(), "references/skill.md": b""}, "SKILL.md"),
        ("release-notes", {DOCUMENT: GOOD.encode(), "assets/a": b"x" * (2**20 + 1)}, "1,048,576"),
    ],
)
def test_a_folder_that_breaks_a_rule_is_refused(name: str, files: dict[str, bytes], reason: str) -> None:
    with pytest.raises(Refused) as refusal:
        validate(name, files)
    assert reason in str(refusal.value)


def test_optional_fields_are_kept_as_they_are() -> None:
    text = front(
        "name: a",
        "description: >",
        "  Folded over",
        "  two lines",
        "license: Apache-2.0",
        "allowed-tools: Bash(git:*) Read",
        "metadata:",
        "  version: 1.0",
        "  author: x",
    )
    found = parse(text)
    assert (found.description, found.body) == ("Folded over two lines", "Steps.")
    assert found.extra == {
        "license": "Apache-2.0",
        "allowed-tools": "Bash(git:*) Read",
        "metadata": {"version": "1.0", "author": "x"},
    }
    assert second_opinion(text, "a")[0] == []


def test_windows_line_ends_are_read() -> None:
    assert parse(GOOD.replace("\n", "\r\n")).description == "Write them."


names = st.from_regex(r"[a-z0-9]{1,6}(-[a-z0-9]{1,6}){0,2}", fullmatch=True)
letters = st.characters(exclude_categories=["Cs"])
SIGNS = ": | #|#|:|'|- |? |> |&a |*a|!x |%|@|`|{|}|[|]|null|true|1.0|<<|---|...|=|é|日本"
scraps = st.sampled_from([*SIGNS.split("|"), "|", '"', "\\", "\t", "\r", "\x85", "\u2028", "\ufeff"])
values = st.lists(scraps | st.text(letters, max_size=6) | st.text("abc ", max_size=6), max_size=5).map(
    "".join
)
fields = st.sampled_from([*document.FIELDS, "author", "", " name"])
lines = st.one_of(
    st.tuples(fields, st.sampled_from([": ", ":", ": |\n  ", ": >\n  ", ":\n  ", ":\n  x: "]), values).map(
        "".join
    ),
    values,
)
fronts = st.tuples(
    names.map("name: {}".format), values.map("description: {}".format), st.lists(lines, max_size=2)
).map(lambda made: [made[0], made[1], *made[2]])


@given(fronts, st.text(letters, max_size=20))
@example(["name: a", "description: b\tc"], "x")
@example(["name: 1", "description: yes"], "--- x")
@example(["name: a", "description: b", "license:"], "x")
def test_whatever_we_accept_the_reference_validator_accepts_and_reads_alike(
    made: list[str], body: str
) -> None:
    text = "\n".join(["---", *made, "---", body])
    try:
        found = parse(text)
    except Refused:
        return
    flaws, theirs = second_opinion(text, found.name)
    assert flaws == []
    assert (found.name, found.description) == (theirs["name"], str(theirs["description"]).strip())


@given(names, st.text(letters, min_size=1, max_size=60), st.text(letters, min_size=1, max_size=60))
def test_what_is_written_is_read_again(name: str, description: str, body: str) -> None:
    try:
        found = parse(write_document(name, description, body))
    except Refused:
        return
    assert (found.name, found.description, found.body) == (name, description.strip(), body.strip())


@given(st.text("abcé :#-'\"&*!|>%@`{}[],.?=~<\\/0", min_size=1, max_size=30))
def test_the_quick_reader_reads_what_the_yaml_reader_reads(value: str) -> None:
    quick = document._simple(f"name: a\ndescription: {value}")
    if quick is not None:
        assert quick == document._read_yaml(f"name: a\ndescription: {value}")
