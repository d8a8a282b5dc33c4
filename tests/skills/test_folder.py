"""Edits of a skill's folder: what is refused, then what each one does, then a law over all of them."""

from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.core.errors import Conflict, Refused
from hone.core.ledger import Actor
from hone.core.messages import digest
from hone.core.skill import ARCHIVED, DOCUMENT, ORIGIN, PINNED, PROJECT, SOURCE, ListedSkill, SkillOrigin
from hone.knowledge.skills import bundled
from hone.knowledge.skills.document import validate, write_document
from hone.knowledge.skills.facts import Facts, digest_files, facts, find_protection, touches_scripts
from hone.knowledge.skills.folder import (
    Archive,
    Create,
    Edit,
    Files,
    Install,
    Patch,
    Pin,
    RemoveFile,
    ReplaceSkill,
    Restore,
    Rewrite,
    SetFiles,
    Uninstall,
    Unpin,
    WriteFile,
    apply,
)
from tests.conftest import Figures, Tier
from tests.knowledge.nasty import nasty

NAME = "release-notes"
TEXT = write_document(NAME, "Write them.", "1. Collect.\n2. Write.\n2. Write.")
NOTE = "references/a.md"
LEARNED: Files = {DOCUMENT: TEXT.encode(), NOTE: b"one two", ORIGIN: b"agent"}
PUT_AWAY: Files = {**LEARNED, ARCHIVED: b"1"}
INSTALLED: Files = {**LEARNED, ORIGIN: b"installed", SOURCE: b"/somewhere"}
OURS = bundled.files(NAME)


@pytest.mark.parametrize(
    ("files", "edit", "reason"),
    [
        (LEARNED, Create(TEXT, SkillOrigin.AGENT), "already; patch or edit it"),
        (PUT_AWAY, Create(TEXT, SkillOrigin.AGENT), "restore it"),
        (OURS, Create(TEXT, SkillOrigin.AGENT), "comes with Hone"),
        ({}, Create(TEXT, SkillOrigin.BUNDLED), "come from elsewhere"),
        ({}, Create(TEXT.replace(NAME, "other"), SkillOrigin.USER), f"write `name: {NAME}`"),
        ({}, Create("no front matter", SkillOrigin.USER), "three hyphens"),
        ({}, Create(TEXT + "\ud800", SkillOrigin.USER), "broken characters"),
        ({}, Rewrite(TEXT), "There is no skill named"),
        ({}, Archive(), "There is no skill named"),
        (OURS, Rewrite(TEXT), "comes with Hone and stays"),
        (OURS, ReplaceSkill({DOCUMENT: TEXT.encode()}), "comes with Hone and stays"),
        (LEARNED, Rewrite(TEXT.replace(NAME, "other")), f"write `name: {NAME}`"),
        (LEARNED, Patch("nowhere to be found", "x"), "occurs nowhere"),
        (LEARNED, Patch("", "x"), "occurs nowhere"),
        (LEARNED, Patch("2. Write.", "x"), "occurs 2 times"),
        (LEARNED, Patch(NAME, "other"), f"write `name: {NAME}`"),
        (
            LEARNED,
            Patch("x", "y", "references/b.md"),
            "has no references/b.md; it has SKILL.md, references/a.md",
        ),
        (LEARNED, Patch("x", "y", "../a"), "cannot be a file of a skill"),
        (LEARNED, Patch("agent", "user", ORIGIN), "cannot be a file of a skill"),
        ({**LEARNED, "assets/a": b"\xff"}, Patch("x", "y", "assets/a"), "UTF-8"),
        (LEARNED, WriteFile(DOCUMENT, b""), "SKILL.md"),
        (LEARNED, WriteFile("references/Skill.MD", b""), "SKILL.md"),
        (LEARNED, WriteFile("../x", b""), "cannot be a file of a skill"),
        (LEARNED, WriteFile("references/A.md", b""), "is there already"),
        (LEARNED, RemoveFile(DOCUMENT), "SKILL.md"),
        (LEARNED, RemoveFile("references/b.md"), "it has SKILL.md, references/a.md"),
        (PUT_AWAY, Patch("Collect", "Take"), "archived; restore it"),
        (PUT_AWAY, WriteFile(NOTE, b""), "archived; restore it"),
        (PUT_AWAY, Archive(), "archived already"),
        (LEARNED, Restore(), "not archived"),
        (LEARNED, Unpin(), "not pinned"),
        ({**LEARNED, PINNED: b"1"}, Pin(), "pinned already"),
        (LEARNED, Install({DOCUMENT: TEXT.encode()}, "/x"), "already"),
        ({}, Install({DOCUMENT: TEXT.encode(), ORIGIN: b"user"}, "/x"), "begins with @"),
        ({}, Install({}, "/x"), "has no SKILL.md"),
        (LEARNED, Uninstall(), "was not installed; archive it"),
        (LEARNED, ReplaceSkill({}), "has no SKILL.md"),
        (LEARNED, ReplaceSkill({DOCUMENT: TEXT.encode(), PINNED: b"1"}), "begins with @"),
        (LEARNED, SetFiles({DOCUMENT: TEXT.encode()}), "@origin must be one of"),
        (LEARNED, SetFiles({**LEARNED, "@owner": b"me"}), "no fact named @owner"),
        (LEARNED, SetFiles({**LEARNED, PINNED: b"yes"}), "are 1 or not there"),
    ],
)
def test_an_edit_that_cannot_be_made_is_refused_with_advice(files: Files, edit: Edit, reason: str) -> None:
    before = dict(files)
    with pytest.raises(Refused) as refusal:
        apply(NAME, files, edit)
    assert reason in str(refusal.value)
    assert files == before


def test_a_name_that_is_no_class_of_task_cannot_be_created_but_installed() -> None:
    text = write_document("docker", "All about it.", "Steps.")
    with pytest.raises(Refused, match="does not say what is done"):
        apply("docker", {}, Create(text, SkillOrigin.AGENT))
    assert apply("docker", {}, Install({DOCUMENT: text.encode()}, "/x"))[SOURCE] == b"/x"


@pytest.mark.parametrize("edit", [Rewrite(TEXT, "0" * 64), Patch("Collect", "Take", seen="0" * 64)])
@pytest.mark.parametrize("files", [LEARNED, INSTALLED])
def test_who_saw_another_version_gets_a_conflict(files: Files, edit: Edit) -> None:
    with pytest.raises(Conflict, match="no longer what you saw"):
        apply(NAME, files, edit)


def test_a_file_that_went_meanwhile_is_a_conflict_and_a_seen_one_is_written() -> None:
    seen = digest(b"one two")
    with pytest.raises(Conflict):
        apply(NAME, {DOCUMENT: TEXT.encode(), ORIGIN: b"user"}, WriteFile(NOTE, b"x", seen))
    assert apply(NAME, LEARNED, WriteFile(NOTE, b"x", seen))[NOTE] == b"x"


def test_create_makes_a_skill_of_one_document() -> None:
    assert apply(NAME, {}, Create(TEXT, SkillOrigin.USER)) == {DOCUMENT: TEXT.encode(), ORIGIN: b"user"}
    assert apply(NAME, {}, Create(TEXT, SkillOrigin.AGENT, "/work"))[PROJECT] == b"/work"


def test_patch_matches_what_was_shown_escaped_and_keeps_hidden_letters_elsewhere() -> None:
    files = {**LEARNED, NOTE: "a\u200bb\u200bc\n".encode()}
    after = apply(NAME, files, Patch("a\\u200bb", "ab", NOTE))
    assert after[NOTE].decode() == "ab\u200bc\n"


def test_install_then_uninstall_leaves_nothing() -> None:
    held = apply(NAME, {}, Install({DOCUMENT: TEXT.encode(), NOTE: b"x"}, "/from"))
    assert facts(held) == Facts(SkillOrigin.INSTALLED, source="/from", approved=digest_files(held))
    assert apply(NAME, held, Uninstall()) == {}


def test_installing_again_takes_the_new_bytes_and_only_where_it_was_installed() -> None:
    held = apply(NAME, {}, Install({DOCUMENT: TEXT.encode(), NOTE: b"x"}, "/from"))
    again = apply(NAME, {**held, PINNED: b"1"}, Install({DOCUMENT: TEXT.encode(), NOTE: b"y"}, "/other"))
    assert facts(again) == Facts(
        SkillOrigin.INSTALLED, pinned=True, source="/other", approved=digest_files(again)
    )
    assert (again[NOTE], facts(again).approved) != (held[NOTE], facts(held).approved)
    for other in (LEARNED, {**held, ARCHIVED: b"1"}):
        with pytest.raises(Refused):
            apply(NAME, other, Install({DOCUMENT: TEXT.encode()}, "/from"))


def test_a_hand_edit_keeps_the_facts_and_a_folder_made_by_hand_is_the_users() -> None:
    pinned = {**LEARNED, PINNED: b"1"}
    after = apply(NAME, pinned, ReplaceSkill({DOCUMENT: TEXT.encode()}))
    assert after == {DOCUMENT: TEXT.encode(), ORIGIN: b"agent", PINNED: b"1"}
    assert facts(apply(NAME, {}, ReplaceSkill({DOCUMENT: TEXT.encode()}))) == Facts(SkillOrigin.USER)


def test_what_is_left_alone_stays_byte_for_byte() -> None:
    after = apply(NAME, LEARNED, Patch("Collect", "Gather"))
    assert after == {**LEARNED, DOCUMENT: TEXT.replace("Collect", "Gather").encode()}
    assert apply(NAME, after, RemoveFile(NOTE)) == {k: v for k, v in after.items() if k != NOTE}
    assert apply(NAME, apply(NAME, LEARNED, Archive()), Restore()) == LEARNED
    assert apply(NAME, apply(NAME, LEARNED, Pin()), Unpin()) == LEARNED


paths = st.sampled_from(
    [DOCUMENT, NOTE, "references/b.md", "scripts/x.sh", "../x", "", "skill.md", "@origin", "a/b"]
)
texts = st.sampled_from([TEXT, TEXT.replace("Write them", "Draft"), "", "Collect", "one", "x", "---"])
edits: st.SearchStrategy[Edit] = st.one_of(
    st.builds(Create, texts, st.sampled_from(SkillOrigin)),
    st.builds(Rewrite, texts),
    st.builds(Patch, texts, texts, paths),
    st.builds(WriteFile, paths, texts.map(str.encode)),
    st.builds(RemoveFile, paths),
    st.sampled_from([Archive(), Restore(), Pin(), Unpin(), Uninstall()]),
    st.builds(Install, st.dictionaries(paths, texts.map(str.encode), max_size=3), texts),
    st.builds(ReplaceSkill, st.dictionaries(paths, texts.map(str.encode), max_size=3)),
    st.builds(SetFiles, st.dictionaries(paths, texts.map(str.encode), max_size=3)),
)


@given(st.lists(edits, max_size=12))
def test_after_any_edits_a_skill_is_sound_or_not_there(made: list[Edit]) -> None:
    held = apply(NAME, {}, Create(TEXT, SkillOrigin.AGENT))
    for edit in made:
        before = dict(held)
        with suppress(Refused):
            held = apply(NAME, held, edit)
            assert before or isinstance(edit, Create | Install | ReplaceSkill | SetFiles), (
                "born without create"
            )
        if held:
            assert validate(NAME, held).name == NAME
            assert facts(held).origin in SkillOrigin


KINDS = [*SkillOrigin, "pinned"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("actor", Actor)
def test_who_may_change_what(actor: Actor, kind: str) -> None:
    birth = SkillOrigin.AGENT if kind == "pinned" else SkillOrigin(kind)
    listed = ListedSkill(NAME, "", "", birth, pinned=kind == "pinned")
    background = actor in (Actor.REVIEW, Actor.CURATOR)
    for asked, corrects in product((False, True), repeat=2):
        more = {"asked": asked, "corrects": corrects}
        copies = corrects and actor is Actor.REVIEW and kind in ("bundled", "installed")
        closed = kind in ("bundled", "installed", "pinned") or (actor, kind) == (Actor.CURATOR, "user")
        if background and closed and not copies:
            with pytest.raises(Refused, match=f"{NAME} .* protected"):
                find_protection(NAME, listed, actor, **more)
        else:
            waits = find_protection(NAME, listed, actor, **more)
            pinned = (actor, kind, asked) == (Actor.AGENT, "pinned", False)
            assert bool(waits) is (pinned or (actor, kind) == (Actor.REVIEW, "user"))
        assert find_protection(NAME, None, actor, **more) == ""


def test_scripts_are_noticed_when_new_or_changed_wherever_they_lie() -> None:
    before = {"scripts/a.py": b"1", "scripts/b.py": b"1", NOTE: b"#!/bin/sh"}
    after = {
        **before,
        "scripts/b.py": b"2",
        "scripts/c": b"",
        "assets/run": b"\xef\xbb\xbf\n#!/bin/sh",
        "references/x.md": b"text",
        ORIGIN: b"#!agent",
    }
    assert touches_scripts(before, after) == ("assets/run", "scripts/b.py", "scripts/c")
    assert touches_scripts(after, before) == ("scripts/b.py",)


def test_of_20_000_names_and_arguments_over_all_actions_no_skill_is_born_outside_create(
    tier: Tier, figures: Figures, tmp_path: Path
) -> None:
    count = 0
    born = 0
    strays: list[object] = []
    for draw in tier.draws(short=2_000, full=20_000):
        count += 1
        odd = nasty(draw.random, draw.index, tmp_path)
        document = f"---\nname: {odd}\ndescription: A craft.\n---\n\nWork.\n"
        edits: list[Edit] = [Create(document, SkillOrigin.AGENT), Rewrite(document), Patch("a", "b", odd)]
        edits += [WriteFile(odd, b"x"), RemoveFile(odd), Archive(), Restore(), Pin()]
        for edit in edits:
            nothing: Files = {}
            for name, files in ((odd, nothing), (NAME, LEARNED)):
                with suppress(Refused, Conflict):
                    after = apply(name, files, edit)
                    born += not files
                    strays += [(name, edit)] if not files and not isinstance(edit, Create) else []
                    strays += [path for path in after if ".." in path.split("/") or path.startswith("/")]
    figures(f"{count:,} names and arguments over 8 actions: {born} skills made, {len(strays)} not by create")
    assert strays == []
