"""A home with a fact in every kind of place that stores text, put there by the code that does so."""

import json
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from hone import Hone
from hone.cli.terminal.editor import KeptHistory
from hone.core.curation import CuratorRun, CuratorRunId
from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, USER, Actor, Author, Evidence, memory_item, project
from hone.core.messages import Message, assistant, digest, encode, user
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.features.backends.part import MemoryPart
from hone.features.checkpoints.decisions import anchor_of
from hone.features.checkpoints.store import CheckpointStore
from hone.features.checkpoints.values import ChangeDraft, PathKind, PathState, TurnMark
from hone.features.curator.reports import Reports
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Check, Task, TaskMessage
from hone.features.templates.store import Templates
from hone.features.templates.values import Example, Template, WorkKind
from hone.files.documents import FileDocuments
from hone.files.exports import note_export
from hone.knowledge import journal
from hone.knowledge.items import Items, KeptMemory
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create, WriteFile
from hone.models.scripted import Scripted, call, rounds
from hone.settings import Settings
from hone.settings.sections import Memory
from hone.stores.tainted import TaintedText, TaintStore

AT = datetime(2026, 11, 16, tzinfo=UTC)
SETTINGS = Settings(memory=Memory(backend="sqlite", owner="ann"))
SYLLABLES = ("ba", "de", "fi", "go", "ku", "la", "me", "ni", "po", "ru", "sé", "tø", "vi", "wö", "xa", "zü")


def make_fact(random: Random) -> str:
    """Return a sentence of words that stand nowhere else; some have letters that JSON may escape."""
    made = ["".join(random.choices(SYLLABLES, k=random.randint(3, 5))) for _ in range(random.randint(2, 4))]
    number = random.randint(10_000, 10**9)
    mark = random.choice(['"', "'", "/", "\\", "", ""])
    return f"{made[0].capitalize()} {mark}{made[1]}{mark} {' '.join(made[2:])} {number}".replace("  ", " ")


def open_home(home: Path, *replies: str | Message) -> Hone:
    return Hone(
        home=home / "home",
        folder=home / "work",
        model=Scripted(rounds(*(replies or ("Yes.",)))),
        settings=SETTINGS,
        learning="queue",
        mode="full",
    )


async def furnish(root: Path, fact: str, tag: str = "a") -> SessionId:
    """Put a fact in every kind of place; return the conversation in which it was said."""
    (root / "work").mkdir(exist_ok=True)
    (root / "work" / f"{tag}.txt").write_text(f"First line.\n{fact}\n" + "More of it.\n" * 4_000)
    reads = assistant(call("read_file", path=f"{tag}.txt"))
    async with open_home(root, reads, f"You said: {fact}.") as hone:
        await know(hone, fact, tag)
        session = await hone.session()
        await session.send(f"Please remember this.\n{fact}")
        await session.send(f"Once more, {fact.upper()}, in  other\n words.")
        branch = await hone.branch(session.id, 2)
        await hone.sessions.rename(session.id, f"About {fact}")
        await quote(hone, session.id, fact, tag)
        await withdraw(hone, fact, tag)
        await beside(hone, session.id, fact, tag)
    async with open_home(root, "Understood.") as hone:
        resumed = await hone.resume(branch)
        await resumed.send(f"And again {json.dumps(fact)}")
    return session.id


async def know(hone: Hone, fact: str, tag: str) -> None:
    """In what is known: journal, skills, items, in effect, pending, replaced, removed and edited by hand."""
    keeper = hone.keeper
    await keeper.note([(MEMORY, journal.Add(f"{fact}"))], OWNER)
    await keeper.note([(USER, journal.Add(f"The owner says: {fact} ({tag})."))], OWNER)
    await keeper.note([(project(str(hone.folder)), journal.Add(f"{fact} in {tag}"))], OWNER)
    text = f"---\nname: skill-{tag}\ndescription: Use it for {tag}.\n---\n\n# Steps\n\n1. {fact}\n2. Go.\n"
    await keeper.edit_skill(f"skill-{tag}", Create(text, SkillOrigin.USER), OWNER)
    await keeper.edit_skill(f"skill-{tag}", WriteFile("references/more.md", f"{fact}\n".encode()), OWNER)
    await hone.library.listed()
    items = Items(keeper, hone.clock)
    entry = await items.keep(
        memory_item("ann", f"key-{tag}"), KeptMemory(f"It is {fact}.", Trust.OWNER), OWNER
    )
    assert entry is not None
    await hone.part(MemoryPart).deliver(entry)
    await hone.part(MemoryPart).worker.drain()
    await hone.part(MemoryPart).backing.make("sqlite").store("ann", f"own-{tag}", fact, {"from": fact})


async def quote(hone: Hone, session: SessionId, fact: str, tag: str) -> None:
    """In what a change rests on: its reason, quotes and evidence."""
    node = (await hone.sessions.load(session)).transcript.nodes[0]
    evidence = (Evidence(session, 1, Trust.OWNER, node.digest),)
    author = Author(Actor.AGENT, session, reason=f"because of {fact}", evidence=evidence, quotes=(fact,))
    await hone.keeper.note(
        [(MEMORY, journal.Add(f"A lesson of {tag}, resting on words.", anyway=True))], author
    )
    foreign = Author(Actor.REVIEW, session, reason=fact, evidence=evidence, trust_floor=Trust.FOREIGN)
    await hone.keeper.note([(MEMORY, journal.Add(f"Pending {tag} {fact}", anyway=True))], foreign)


async def withdraw(hone: Hone, fact: str, tag: str) -> None:
    """In lessons that the owner took back."""
    keeper = hone.keeper
    await keeper.note([(MEMORY, journal.Add(f"Removed {tag}: {fact}."))], OWNER)
    await keeper.note([(MEMORY, journal.Remove(f"Removed {tag}: {fact}."))], OWNER)
    await keeper.note([(USER, journal.Add(f"Undone {tag}: {fact}"))], OWNER)
    await keeper.undo((await hone.ledger.entries())[0].id)


async def beside(hone: Hone, session: SessionId, fact: str, tag: str) -> None:
    """In files beside the database, and in other databases."""
    home = hone.home
    KeptHistory(home / "history", print).store_string(f"Please remember this.\n{fact}")
    (home / "quarantine").mkdir(exist_ok=True)
    (home / "quarantine" / f"{tag}.sh").write_text(f"echo {fact}\n")
    (home / f"hone-damaged-20261116-00000{len(tag)}.db").write_bytes(b"\0" * 100 + fact.encode())
    (home / f"MEMORY.md~{tag}").write_text(f"- {fact}\n")
    example = Example("read_file", json.dumps({"path": fact}), fact, 5, Trust.AGENT, Trust.LOCAL)
    templates = Templates(FileDocuments(home))
    await templates.add(Template(f"t-{tag}", WorkKind.FILE, session, AT, f"On {tag}.", (), (example,)))
    other = Template(f"u-{tag}", WorkKind.FILE, SessionId("other"), AT, fact, (), (example,))
    await templates.add(other)
    message = TaskMessage(encode(user(fact)).decode(), Trust.OWNER, AT)
    task = Task(f"e-{tag}", session, AT, "/work", fact, Check("true", fact, ()), {"a": fact}, (message,))
    Studies(FileDocuments(home), home).add(task)
    run = CuratorRun(AT, "it was time", session, error=fact, report=f"About {fact}.")
    known = await hone.stores.curator_runs.runs(1)
    made, _ = await hone.stores.curator_runs.complete(run, known[0].id if known else CuratorRunId(0), (), {})
    Reports(home / "curator", FileDocuments(home)).print(made)
    await checkpoint(hone, session, fact, tag)
    store = TaintStore(home)
    text = TaintedText(f"/work/{tag}", "file", "ab", "", frozenset({1}), session, 1)
    store.add([text, TaintedText(f"/work/{fact}/x", "file", "cd", "", frozenset({2}), session, 2)])
    store.close()
    export = home.parent / f"export-{tag}.md"
    export.write_text(f"# {fact}\n")
    note_export(home, export)


async def checkpoint(hone: Hone, session: SessionId, fact: str, tag: str) -> None:
    """In a file's version before a tool changed it."""
    store = CheckpointStore(hone.home, hone.clock)
    node = (await hone.sessions.load(session)).transcript.nodes[0]
    data = f"before\n{fact}\n".encode() * 20
    state = PathState(PathKind.FILE, 0o644, "1" * 64)
    before = PathState(PathKind.FILE, 0o644, digest(data))
    draft = ChangeDraft(Path(f"/work/{tag}.txt"), before, state, "write_file")
    await store.record(TurnMark(session, 1, anchor_of(node)), [draft], {before.digest: data}, 0)
    await store.close()
