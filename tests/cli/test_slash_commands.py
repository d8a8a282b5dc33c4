"""Decisions of the chat's commands: what is laid out, what is attached, and what is the owner's."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone import Hone
from hone.cli.own_command import KEPT, OwnOutput, cut
from hone.cli.render import Paint
from hone.cli.slash import COMMANDS, ChatState, SlashDraft, SlashRequest, obey, parse_own
from hone.cli.slash_commands.conversation import color_diff, find_begun
from hone.cli.slash_commands.figures import bar, measure
from hone.cli.slash_commands.helping import KEYS, WIDEST, lay_out_help
from hone.cli.slash_commands.memory import parse_part
from hone.core.errors import Refused
from hone.core.messages import assistant
from hone.core.trust import Trust
from hone.features.checkpoints.diffs import compare
from hone.models.scripted import Scripted, call, echo, lines
from hone.runtime.attaching import LARGEST, decode, find_files, read_files
from tests.allowed import Labels


@pytest.mark.parametrize("width", [40, 60, 72, 80, 100, 120, 200])
def test_the_help_fits_any_screen_and_names_every_command_and_key(width: int) -> None:
    rows = list(lay_out_help(COMMANDS, width))
    assert all(len(row) <= max(width, 48) for row in rows)
    assert [name for name in COMMANDS if not any(row.startswith(f"  /{name}") for row in rows)] == []
    assert [key for key in KEYS if not any(row.startswith(f"  {key}") for row in rows)] == []
    beside = [row for row in rows if row.startswith("  /") and len(row) >= WIDEST]
    assert all(row[WIDEST - 1] == " " for row in beside), "no name runs into its text"


@pytest.mark.parametrize(
    ("message", "command"),
    [("!ls -l", "ls -l"), (" ! ls\n", "ls"), ("!", ""), ("hi!", ""), ("! ", ""), ("/help", "")],
)
def test_what_follows_an_exclamation_mark_is_the_owners_command(message: str, command: str) -> None:
    assert parse_own(message) == command


def test_what_a_command_printed_is_foreign_and_bounded() -> None:
    attached = OwnOutput("make\x1b", "x" * (2 * KEPT) + " sk-ant-api03-" + "a" * 95, 2).attach()
    assert attached.trust is Trust.FOREIGN
    assert (len(attached.text) < KEPT + 200, "characters left out" in attached.text) == (True, True)
    assert (attached.text.endswith("(exit code 2)"), "\x1b" in attached.name, "sk-ant" in attached.text) == (
        *(True, False, False),
    )
    assert cut("short") == "short"


def test_files_are_named_by_an_at_sign_and_words_stay_words(tmp_path: Path) -> None:
    for name in ("notes.txt", "a b.md", "picture.png", "dots.."):
        (tmp_path / name).write_text("x")
    (tmp_path / "folder").mkdir()

    def found(words: str) -> list[str]:
        return [path.name for path in find_files(words, tmp_path)]

    assert found("read @notes.txt, then @notes.txt again (@notes.txt)") == ["notes.txt"]
    assert found('see "@a b.md" and @dots..') == ["a b.md", "dots.."]
    assert found("mail me@notes.txt, @nobody, @folder, @picture.png or @") == []
    assert found("don't read @notes.txt") == ["notes.txt"]


async def test_a_file_is_attached_with_its_label_and_never_whole_if_it_is_large(tmp_path: Path) -> None:
    large, binary = tmp_path / "large.txt", tmp_path / "binary"
    large.write_text("a" * (LARGEST + 7))
    binary.write_bytes(b"a\0b")
    for trust in (Trust.LOCAL, Trust.FOREIGN):
        [found] = await read_files([large], tmp_path, Labels(trust))
        assert (found.name, found.trust) == ("file large.txt", trust)
        assert found.text.endswith(
            f"[The file has {LARGEST + 7:,} bytes; the first {LARGEST:,} are attached.]"
        )
    for file, why in ((binary, "is not a text file"), (tmp_path / "gone", "cannot be read")):
        with pytest.raises(Refused, match=why):
            await read_files([file], tmp_path, Labels(Trust.LOCAL))
    with pytest.raises(Refused, match="at most 20 files"):
        await read_files([large] * 21, tmp_path, Labels(Trust.LOCAL))
    assert decode(b"caf\xc3", 4, "x") == "caf\ufffd"


@pytest.mark.parametrize(
    ("argument", "part"),
    [
        ("Tests run with make.", ("memory", "Tests run with make.")),
        ("user: I live in Kiel.", ("user", "I live in Kiel.")),
        ("Project:  uses tabs", ("project", "uses tabs")),
        ("Note: the user: matters", ("memory", "Note: the user: matters")),
    ],
)
def test_a_part_of_the_journal_can_be_named(argument: str, part: tuple[str, str]) -> None:
    assert parse_part(argument) == part


@given(st.binary(), st.binary())
def test_a_diff_says_something_exactly_if_the_file_is_another(before: bytes, after: bytes) -> None:
    told = list(compare("x", before, after))
    assert not (before == after and told)
    assert all("\x1b" not in line for line in told)
    texts = before.decode("utf-8", "replace").splitlines(), after.decode("utf-8", "replace").splitlines()
    assert told or texts[0] == texts[1]


def test_a_file_that_was_not_there_is_compared_with_nothing() -> None:
    assert list(compare("x", None, b"a\n")) == ["--- /dev/null", "+++ b/x", "@@ -0,0 +1 @@", "+a"]
    assert list(compare("x", b"a\n", None)) == ["--- a/x", "+++ /dev/null", "@@ -1 +0,0 @@", "-a"]
    assert list(compare("x", b"\0", b"")) == ["Binary file x has changed"]
    assert color_diff(["@@ -1 +1 @@", "-a", "+b", " c"], Paint(colour=True))[1:3] == [
        *("\x1b[31m-a\x1b[0m", "\x1b[32m+b\x1b[0m")
    ]
    assert color_diff(["- a list"], Paint(colour=True)) == ["- a list"]


async def test_a_turn_is_repeated_or_changed_from_the_message_that_began_it(home: Path) -> None:
    script = lines(assistant(call("todo")), "One.", "Two.")
    async with Hone(home=home, model=Scripted(script)) as hone:
        state = ChatState(hone, await hone.session())
        for words in ("first", "second"):
            await state.session.send(words, lambda _: None)
        old, whole = state.session.id, len(state.session.transcript)
        again = await obey(state, "retry", "")
        assert isinstance(again, SlashRequest)
        assert (again.words, again.voice) == ("second", Trust.OWNER)
        assert (state.session.id == old, len(state.session.transcript)) == (False, whole - 2)
        changed = await obey(state, "edit", "")
        assert isinstance(changed, SlashDraft)
        assert (changed.words, len(state.session.transcript)) == ("first", 0)
        assert len((await hone.sessions.load(old)).transcript) == whole, "nothing is lost"
        assert [at for at, _ in find_begun((await hone.sessions.load(old)).transcript.nodes)] == [
            0,
            whole - 2,
        ]


async def test_the_window_is_divided_without_rest(home: Path) -> None:
    async with Hone(home=home, model=Scripted(echo)) as hone:
        session = await hone.session()
        await session.send("hello")
        sizes = measure(session.agent.prefix, session.transcript)
        system = session.agent.prefix.system
    parts = sum(sizes[name] for name in ("system prompt", "skills", "journal", "project instructions"))
    assert (parts, sizes["skills"] > 0, sizes["your messages"] > 0) == (len(system.encode()), True, True)
    assert (bar(1, 1_000_000), bar(500, 1_000), bar(5, 0), bar(0, 9)) == ("█", "█" * 10, "", "")
