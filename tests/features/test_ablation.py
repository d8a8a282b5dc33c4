"""K2: `hone why --verify` runs a turn again without one lesson, where nothing of the owner's is touched."""

import json
import os
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest

from hone.app import Hone
from hone.core.errors import ModelError, Unauthorised
from hone.core.ledger import MEMORY
from hone.core.messages import Message, Reminder, Role, assistant, user
from hone.core.prefix import Prefix
from hone.core.skill import SkillOrigin
from hone.core.transcript import Transcript
from hone.features.attribution.ablating import give, leave_out
from hone.features.attribution.answers import find_answer
from hone.features.attribution.commands import add_ablations
from hone.features.attribution.explaining import explain
from hone.features.attribution.items import list_items
from hone.features.attribution.report import verification_data, write_verification
from hone.features.attribution.rerunning import close_settings, collect_files
from hone.features.attribution.scratch import scratch_folder
from hone.features.attribution.values import ItemKind, Method, PromptItem, Use
from hone.features.attribution.verifying import (
    LOOKS,
    PAIRS,
    AblationVerdict,
    Verification,
    Verifier,
    decide,
    is_over,
)
from hone.files.locks import acquire, release
from hone.knowledge.journal import Add, ReplaceEntry
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create
from hone.models.scripted import Scripted, call
from hone.settings import Settings
from hone.settings.sections import HookSettings, McpSettings, Memory
from tests.conftest import Figures, requires

LOOK, REFUSED = "curl http://127.0.0.1:9/", "Failed to connect"
"""A command that the owner allows, and what it says if it reached the network."""
HERON, DUE = "The staging server is called heron.", "Invoices are due within 30 days."


class Deployer(Scripted):
    """Writes where it deploys to into a file, by what its prompt says; its words may vary."""

    def __init__(self, slips: float = 0.0) -> None:
        super().__init__(self.reply)
        self.luck, self.slips, self.system = Random(3), slips, ""
        self.fails = False

    def stream(self, prefix: Prefix, transcript: Transcript):  # type: ignore[no-untyped-def]
        self.system = prefix.system
        return super().stream(prefix, transcript)

    def reply(self, messages: Sequence[Message]) -> Message:
        last = max(at for at, message in enumerate(messages) if message.role is Role.USER)
        done = [made for each in messages[last:] for made in each.calls]
        known = self.system + "".join(each.note.text for each in messages if each.note)
        where = "heron" if "heron" in known and self.luck.random() >= self.slips else "localhost"
        if self.fails:
            raise Unauthorised("There is no key.")
        if not done:
            return assistant(call("read_file", path="notes.txt"))
        if len(done) == 1:
            return assistant(call("write_file", path="target.txt", content=where))
        if len(done) == 2:
            return assistant(call("terminal", command=LOOK, network=True))
        extra = self.luck.choice(["", " It is quick.", " All is well."]) if self.slips else ""
        return assistant(f"It is deployed to {where}.{extra}")


async def answered(hone: Hone, folder: Path) -> None:
    requires("curl")
    (folder / "notes.txt").write_text("Deploy on Friday.\n")
    (folder / ".hidden").write_text("mine")
    await hone.keeper.note([(MEMORY, Add(HERON)), (MEMORY, Add(DUE))], OWNER)
    turn = await (await hone.session()).send("Deploy the branch for a first look at http://127.0.0.1:9/.")
    assert any(REFUSED in each.message.result.text for each in turn.nodes if each.message.result)


async def verified(hone: Hone, *texts: str, pairs: int = PAIRS) -> Verification:
    answer = await find_answer(hone.sessions)
    items = [each for each in list_items(answer) if each.text in texts]
    return await Verifier(hone, answer, pairs).verify(items)


def opened(home: Path, folder: Path, model: Scripted) -> Hone:
    return Hone(home=home, folder=folder, model=model, learning="off", allow=("terminal: curl *",))


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary folders are made."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


async def test_an_ablation_tells_the_lesson_that_was_needed_from_the_one_that_was_not(
    home: Path, tmp_path: Path, scratch: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    model = Deployer()
    async with opened(home, folder, model) as hone:
        await answered(hone, folder)
        mine, known = everything(folder), await hone.ledger.latest()
        sessions, before = await hone.sessions.list(origin=None), len(model.calls)
        found = await verified(hone, HERON, DUE)
        needed, idle = found.ablations
        assert (needed.verdict, len(needed.pairs)) == (AblationVerdict.NEEDED, 6)
        assert (idle.verdict, len(idle.pairs)) == (AblationVerdict.SAME, 4), "four equal pairs are enough"
        assert needed.difference > 0.1
        assert needed.bounds[0] > 0
        assert idle.bounds == (0.0, 0.0)
        assert found.runs == 6 + 6 + 4, "runs with everything are shared"
        # What the runs did stays with them.
        assert everything(folder) == mine
        assert await hone.ledger.latest() == known
        assert await hone.sessions.list(origin=None) == sessions
        assert not [*scratch.glob("hone-why-*")]
        asked = [(prefix, said) for prefix, said in model.calls[before:]]
        assert sum(HERON in prefix.system for prefix, _ in asked) > sum(
            HERON not in prefix.system for prefix, _ in asked
        )
        answers = [
            node.message.result.text for _, said in asked for node in said.nodes if node.message.result
        ]
        assert not [text for text in answers if REFUSED in text], "nothing reached the network"
        explanation = add_ablations(await explain(hone, await find_answer(hone.sessions)), found.ablations)
        assert [each.item.text for each in explanation.used] == [HERON]
        assert (explanation.used[0].use, explanation.used[0].by[-1]) == (Use.USED, Method.ABLATION)
        lines = "\n".join(write_verification(found))
        assert "needed: 100% with it" in lines
        assert "It took 16 runs" in lines
        assert json.loads(json.dumps(verification_data(found)))["ablations"][0]["verdict"] == "needed"


async def test_everything_but_the_item_is_as_it_was_byte_for_byte(home: Path, tmp_path: Path) -> None:
    """The prompt of a run with everything differs from the stored one in the folder alone."""
    folder = tmp_path / "work"
    folder.mkdir()
    model = Deployer()
    async with opened(home, folder, model) as hone:
        await answered(hone, folder)
        await hone.keeper.note([(MEMORY, ReplaceEntry(DUE, "Invoices are due within 60 days."))], OWNER)
        session = await hone.resume((await find_answer(hone.sessions)).header.id)
        await session.send("Deploy it again.")
        stored, before = session.agent.prefix.system, len(model.calls)
        found = await verified(hone, HERON, "Invoices are due within 60 days.", pairs=6)
        runs = [(prefix, said) for prefix, said in model.calls[before:] if not said.nodes[-1].message.result]
        work = {prefix.system.rpartition("Working folder: ")[2].partition("\n")[0] for prefix, _ in runs}
        assert len(work) == 1
        [place] = work
        whole = {prefix.system.replace(place, str(folder)) for prefix, _ in runs}
        assert whole == {stored, stored.replace(f"- {HERON}\n", "")}
        told = {said.nodes[-1].message.note.text for _, said in runs if said.nodes[-1].message.note}
        notes = session.transcript.nodes[
            len(session.transcript) - len((await find_answer(hone.sessions)).turn)
        ]
        assert notes.message.note
        assert notes.message.note.text in told
        assert len(told) == 2, "the note without the entry is the other one"
        assert [each.verdict for each in found.ablations] == [AblationVerdict.NEEDED, AblationVerdict.SAME]


async def test_a_model_that_varies_and_slips_is_still_understood(home: Path, tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    model = Deployer()
    async with opened(home, folder, model) as hone:
        await answered(hone, folder)
        model.slips = 0.1
        found = await verified(hone, HERON, DUE)
        assert [each.verdict for each in found.ablations] == [AblationVerdict.NEEDED, AblationVerdict.SAME]


async def test_a_provider_that_fails_ends_it_and_counts_as_nothing(
    home: Path, tmp_path: Path, scratch: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    model = Deployer()
    async with opened(home, folder, model) as hone:
        await answered(hone, folder)
        model.fails = True
        with pytest.raises(ModelError, match="no key"):
            await verified(hone, HERON)
        assert not [*scratch.glob("hone-why-*")]


async def test_a_skill_is_left_out_with_all_that_was_read_of_it(home: Path, tmp_path: Path) -> None:
    document = "---\nname: shipping\ndescription: How to ship.\n---\n\nUse heron.\n"

    def reply(messages: Sequence[Message]) -> Message:
        seen = any(each.calls for each in messages)
        return assistant("Done.") if seen else assistant(call("skill_view", name="shipping"))

    async with opened(home, tmp_path, Scripted(reply)) as hone:
        await hone.keeper.edit_skill("shipping", Create(document, SkillOrigin.USER), OWNER)
        session = await hone.session()
        aside = await hone.library.use(["shipping"], session.id)
        await session.send("Ship it.", aside=aside)
        await session.send("Once more.")
        answer = await find_answer(hone.sessions)
        item = next(
            each for each in list_items(answer) if each.kind is ItemKind.SKILL and each.name == "shipping"
        )
        whole, without = give(answer), leave_out(give(answer), item)
        text = without.prefix.system + "".join(node.encoded.decode() for node in without.before)
        assert "heron" in "".join(node.encoded.decode() for node in whole.before)
        assert "heron" not in text
        assert "How to ship" not in text
        assert "There is no skill shipping." in text


def test_a_memory_and_a_template_are_left_out_of_the_messages() -> None:
    reminder = Reminder("- host: heron\n- port: 8443\n  or 443", "owner")
    message = Message(Role.USER, (reminder, *user("Where?").parts))
    from hone.features.attribution.ablating import _without_memory  # noqa: PLC0415  one rule by itself

    kept = _without_memory(message, PromptItem(ItemKind.MEMORY, "port", "8443\nor 443"))
    assert kept.reminder
    assert kept.reminder.text == "- host: heron"
    assert _without_memory(kept, PromptItem(ItemKind.MEMORY, "host", "heron")).reminder is None


def test_nothing_of_the_owners_that_runs_outside_the_sandbox_is_there() -> None:
    memory = Memory(backend="sqlite", freshness="next-turn")
    hook = HookSettings(event="turn_end", command="true")
    closed = close_settings(
        Settings(plugins=("a.b:c",), hooks=(hook,), mode="full", fallback="openai/m", memory=memory)
    )
    assert (closed.plugins, closed.hooks, closed.mcp, closed.mode) == ((), (), McpSettings(), "auto")
    assert (closed.memory.backend, closed.memory.freshness, closed.fallback) == ("null", "next-session", "")


def test_what_a_run_begins_with_has_no_secret_no_hidden_file_and_nothing_from_elsewhere(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "work"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub" / "a.txt").write_text("one")
    (folder / ".mcp.json").write_text("{}")
    (folder / "key.txt").write_text("AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzR9aQ2LmT4")
    (folder / "binary").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "other.txt").write_text("not mine")
    (folder / "link.txt").symlink_to(tmp_path / "other.txt")
    assert collect_files(folder, ()) == {"sub/a.txt": "one"}


def test_what_a_killed_process_left_goes_with_the_next_run_and_nothing_else(scratch: Path) -> None:
    left, used, young, other = (
        scratch / name for name in ("hone-why-1", "hone-why-2", "hone-why-3", "notes")
    )
    for folder in (left, used, young, other):
        (folder / "home").mkdir(parents=True)
        if folder is not young:
            os.utime(folder, (1, 1))
    (scratch / "hone-why-link").symlink_to(other)
    handle = acquire(used / ".lock")
    os.utime(used, (1, 1))
    with scratch_folder() as root:
        assert root.stat().st_mode & 0o777 == 0o700
        names = {path.name for path in scratch.iterdir()}
        assert names == {"hone-why-2", "hone-why-3", "notes", "hone-why-link", root.name}
    assert not root.exists()
    assert (other / "home").is_dir()
    release(handle)


def test_the_error_of_the_sign_test_is_held_for_every_stopping(figures: Figures) -> None:
    """All outcomes of pairs that differ are added up, up to the last look; equal pairs change nothing."""
    error = reach = 0.0
    state = {(0, 0): 1.0}
    for look in range(1, max(LOOKS) + 1):
        after: dict[tuple[int, int], float] = {}
        for (wins, losses), chance in state.items():
            for step in ((wins + 1, losses), (wins, losses + 1)):
                if min(step) <= LOOKS.get(look, -1):
                    error += chance / 2
                else:
                    after[step] = after.get(step, 0.0) + chance / 2
        state = after
        reach = sum(state.values())
    figures(f"sign test with looks at {sorted(LOOKS)}: error {error:.4f} if an item does nothing")
    assert error <= 0.05
    assert error + reach == pytest.approx(1.0)


def test_it_stops_when_it_is_decided_or_cannot_be_any_more() -> None:
    win, loss, tie = (1.0, 0.5), (0.5, 1.0), (1.0, 1.0)
    assert decide([win] * 6) is AblationVerdict.NEEDED
    assert decide([win] * 6 + [loss] * 20) is AblationVerdict.NEEDED, "later pairs change nothing"
    assert decide([loss] * 6) is AblationVerdict.DESPITE
    assert decide([win] * 5 + [loss]) is AblationVerdict.SAME
    assert decide([win, loss] + [win] * 10) is AblationVerdict.NEEDED
    assert decide([win] * 6 + [loss] * 20) is AblationVerdict.NEEDED, "later pairs change nothing"
    for pairs in product((win, loss, tie), repeat=5):
        assert is_over(pairs, 5), "six pairs that differ cannot be reached"
        fewer, ties = min(pairs.count(win), pairs.count(loss)), pairs.count(tie)
        possible = (not fewer and ties <= 6) or (fewer == 1 and ties <= 2)
        assert is_over(pairs, 12) == (not possible or ties == 5), pairs
