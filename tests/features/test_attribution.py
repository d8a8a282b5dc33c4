"""K2: which lessons were in the prompt of an answer, exactly, and which of them shaped it."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.app import Hone
from hone.core.errors import Missing, Refused
from hone.core.ids import SessionId
from hone.core.knowledge import News, Snapshot
from hone.core.ledger import MEMORY, USER, ChangeId
from hone.core.messages import Message, Reminder, Role, assistant, user
from hone.core.messages import answer as answered
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.skill import ListedSkill, SkillOrigin
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.attribution.ablating import give, leave_out
from hone.features.attribution.answers import find_answer, find_end, find_start
from hone.features.attribution.citing import ask, choose
from hone.features.attribution.explaining import explain
from hone.features.attribution.items import list_items
from hone.features.attribution.judging import judge
from hone.features.attribution.report import to_data, write_lines
from hone.features.attribution.values import AnsweredTurn, Explanation, ItemKind, ItemPlace, Method, Use
from hone.knowledge.journal import Add, PinEntry, Remove, ReplaceEntry
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.folder import Create
from hone.models.scripted import Scripted, call, lines
from hone.prompt.compose import (
    change_folder,
    compose,
    find_folder,
    find_noted,
    index,
    instructions,
    journal,
    leave_out_entry,
    leave_out_instructions,
    leave_out_skill,
    order_sections,
    surroundings,
    to_plain,
)
from hone.prompt.news import describe_news, leave_out_news, read_news
from hone.settings import Settings
from tests import databases
from tests.doubles.meanings import Told
from tests.given import NOON

SKILL = "---\nname: shipping\ndescription: How to ship a release.\n---\n\nRun make ship and wait.\n"


class Agent(Scripted):
    """Deploys to the server that its prompt or its conversation names, reads the skill if there is one, and
    gets its first call wrong."""

    def __init__(self) -> None:
        super().__init__(self.reply)
        self.system = ""

    def stream(self, prefix: Prefix, transcript: Transcript):  # type: ignore[no-untyped-def]
        self.system = prefix.system
        return super().stream(prefix, transcript)

    def reply(self, messages: Sequence[Message]) -> Message:
        last = max(at for at, message in enumerate(messages) if message.role is Role.USER)
        said, done = messages[last].text, [call for each in messages[last:] for call in each.calls]
        if "Which of these" in said:
            return assistant("I relied on 1, and on 99.")
        known = self.system + "".join(each.note.text for each in messages if each.note)
        if "ship" in said and "- shipping:" in self.system and len(done) < 2:
            name = "shiping" if not done else "shipping"
            return assistant(call("skill_view", name=name))
        server = "osprey" if "osprey" in known else "heron" if "heron" in known else "the server"
        return assistant(f"Deploy it to {server}.")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sqlite":
        yield ""
        return
    with databases.new_database() as url:
        yield url


def opened(home: Path, folder: Path, database: str = "", model: Scripted | None = None) -> Hone:
    return Hone(
        home=home, folder=folder, model=model or Agent(), settings=Settings(database=database), learning="off"
    )


async def taught(hone: Hone) -> None:
    for target, text in (
        (MEMORY, "The staging server is called heron."),
        (MEMORY, "Invoices are due within 30 days."),
        (USER, "User's sister is called Anna."),
    ):
        await hone.keeper.note([(target, Add(text))], OWNER)


async def why(hone: Hone, session: str = "", number: int = 0) -> Explanation:
    return await explain(hone, await find_answer(hone.sessions, session, number))


def shaped(explanation: Explanation) -> list[str]:
    return [each.item.text or each.item.name for each in explanation.used]


async def test_an_answer_names_the_entry_that_shaped_it_and_the_step_that_undoes_it(
    home: Path, tmp_path: Path, database: str
) -> None:
    async with opened(home, tmp_path, database) as hone:
        await taught(hone)
        session = await hone.session()
        await session.send("Where do I deploy for a first look?")
        explanation = await why(hone)
        assert shaped(explanation) == ["The staging server is called heron."]
        entries = [each for each in explanation.items if each.item.kind is ItemKind.ENTRY]
        assert {each.item.text for each in entries} == {
            "The staging server is called heron.",
            "Invoices are due within 30 days.",
            "User's sister is called Anna.",
        }
        [judged] = explanation.used
        assert (judged.by, judged.item.place, judged.change) == ((Method.MEASURE,), ItemPlace.PROMPT, 1)
        assert {"hone undo 1", "hone memory pin 1"} <= {*judged.steps}
        await hone.keeper.note([(MEMORY, PinEntry("heron"))], OWNER)
        [pinned] = (await why(hone)).used
        assert pinned.pinned
        assert f"hone memory unpin {pinned.change}" in pinned.steps, "a pin changes no word of it"
        assert "heron" in judged.because
        lines = "\n".join(write_lines(explanation))
        assert "hone undo 1" in lines
        assert "2 entries" in lines
        data = to_data(explanation)
        assert json.loads(json.dumps(data))["items"][0]["use"] == Use.LIKELY


async def test_each_answer_has_its_own_prompt_after_news_a_resume_and_another_process(
    home: Path, tmp_path: Path, database: str
) -> None:
    """A note withdraws one entry and brings another; the first answer still had the old one."""
    async with opened(home, tmp_path, database) as hone:
        await taught(hone)
        session = await hone.session()
        await session.send("Where do I deploy for a first look?")
        old, new = "The staging server is called heron.", "The staging server is called osprey."
        await hone.keeper.note([(MEMORY, ReplaceEntry(old, new))], OWNER)
        first = session.id
    async with opened(home, tmp_path, database) as hone:
        session = await hone.resume(first)
        await session.send("And today?")
        assert shaped(await why(hone, first)) == [new]
        items = {each.item.text: each.item for each in (await why(hone, first)).items}
        assert (items[old].place, items[old].withdrawn) == (ItemPlace.PROMPT, 3)
        assert (items[new].place, items[new].message, items[new].withdrawn) == (ItemPlace.NOTE, 3, 0)
        before = await why(hone, first, 2)
        assert shaped(before) == [old]
        assert new not in {each.item.text for each in before.items}
        assert before.used[0].change is None, "it is no longer in the journal in these words"
        branch = await hone.branch(first, 2)
        assert shaped(await why(hone, branch)) == [old]


async def test_an_answer_keeps_the_prompt_it_was_made_with_when_the_model_changes(
    home: Path, tmp_path: Path
) -> None:
    async with opened(home, tmp_path) as hone:
        await taught(hone)
        session = await hone.session()
        await session.send("Where do I deploy for a first look?")
        await hone.keeper.note([(MEMORY, Remove("heron"))], OWNER)
        fresh = await hone.session()
        await session.switch(fresh.agent)
        await session.send("And now?")
        assert shaped(await why(hone, session.id, 2)) == ["The staging server is called heron."]
        later = {each.item.text for each in (await why(hone, session.id)).items}
        assert "The staging server is called heron." not in later, "it is in neither prefix nor note"
        branched = await hone.branch(session.id)
        assert shaped(await why(hone, branched, 2)) == ["The staging server is called heron."]


async def test_an_answer_keeps_its_prompt_when_the_conversation_is_shortened(
    home: Path, tmp_path: Path, database: str
) -> None:
    """A note that was cut out later was there when the model answered."""
    async with opened(home, tmp_path, database) as hone:
        await taught(hone)
        session = await hone.session()
        await session.send("Hello.")
        await hone.keeper.note([(MEMORY, Add("Parcels go to gate 7."))], OWNER)
        for number in range(6):
            await session.send(f"Where do I deploy branch {number}?")
        whole = len(session.transcript)
        last = (await find_answer(hone.sessions, session.id)).turn
        assert await session.compact()
        assert len(session.transcript) < whole
        answer = await find_answer(hone.sessions, session.id)
        assert (len(answer.before) + len(answer.turn), answer.number) == (whole, len(session.transcript))
        assert [node.digest for node in answer.turn] == [node.digest for node in last]
        items = {each.text: each for each in list_items(answer)}
        assert (items["Parcels go to gate 7."].place, items["Parcels go to gate 7."].message) == (
            ItemPlace.NOTE,
            3,
        )
        await session.send("And branch 7?")
        later = await find_answer(hone.sessions, session.id)
        assert len(later.before) + len(later.turn) == len(session.transcript)


def test_memories_examples_and_what_was_looked_up_or_written_are_items_of_the_turn() -> None:
    said = Transcript("root")
    for message in (
        Message(Role.USER, user("Add 1 and 2.").parts, template="sums"),
        Message(Role.ASSISTANT, (call("execute_code", code="print(1 + 2)"),), template="sums"),
        Message(
            Role.USER, (Reminder("- host: heron\n  port 8443\n- team: blue", "owner"), *user("Hi.").parts)
        ),
        assistant(made := call("memory", action="add", target="user", text="Likes tea.", evidence=["Hi."])),
        answered(made, "Saved (change 3). user: 10 of 2,000 characters."),
        assistant(failed := call("memory", action="add", text="Not kept.", evidence=["Hi."])),
        answered(failed, "Refused.", failed=True),
        assistant("Hello."),
        user("Where do we deploy?"),
        assistant(asked := call("memory_backend", action="query", query="deploy")),
        answered(asked, "deploy/host: heron"),
        assistant("To heron."),
    ):
        said = said.then(message, Trust.OWNER, NOON)
    nodes = said.nodes
    header = Header(SessionId("0a1b2c3d4e"), NOON)
    turn = AnsweredTurn(header, Prefix("openai/m", "Hello."), nodes[:8], nodes[8:], 12)
    assert (find_end(nodes), find_start(nodes, 11), find_start(nodes, 7)) == (11, 8, 2)
    items = {(each.kind, each.name): each for each in list_items(turn)}
    assert items[ItemKind.TEMPLATE, "sums"].place is ItemPlace.EXAMPLES
    assert items[ItemKind.MEMORY, "host"].text == "heron\nport 8443"
    assert items[ItemKind.MEMORY, "team"].message == 3
    assert items[ItemKind.MEMORY, "deploy"].place is ItemPlace.CONVERSATION
    assert items[ItemKind.ENTRY, "user"].text == "Likes tea."
    assert not [each for each in items.values() if each.text == "Not kept."]
    assert leave_out(give(turn), items[ItemKind.TEMPLATE, "sums"]).before == nodes[2:8]
    fewer = leave_out(give(turn), items[ItemKind.MEMORY, "team"]).before[2].message.reminder
    assert fewer == Reminder("- host: heron\n  port 8443", "owner")
    with pytest.raises(Refused, match="cannot be left out"):
        leave_out(give(turn), items[ItemKind.ENTRY, "user"])


async def test_a_skill_counts_by_record_and_a_failed_view_does_not(home: Path, tmp_path: Path) -> None:
    async with opened(home, tmp_path) as hone:
        await hone.keeper.edit_skill("shipping", Create(SKILL, SkillOrigin.USER), OWNER)
        session = await hone.session()
        await session.send("Please ship it.")
        [used] = (await why(hone)).used
        assert (used.item.kind, used.item.name, used.use) == (ItemKind.SKILL, "shipping", Use.USED)
        assert (used.by, used.because) == ((Method.RECORD,), "read in message 4")
        assert "hone skills pin shipping" in used.steps
        names = {each.item.name for each in (await why(hone)).items if each.item.kind is ItemKind.SKILL}
        assert "shiping" not in names
        await session.send("Where do I deploy?")
        assert not [each for each in (await why(hone)).used if each.item.name == "shipping"]


async def test_what_was_not_answered_or_is_no_message_is_said(home: Path, tmp_path: Path) -> None:
    async with opened(home, tmp_path) as hone:
        with pytest.raises(Missing, match="no conversation"):
            await why(hone)
        session = await hone.session()
        await session.send("Hello.")
        with pytest.raises(Missing, match="messages 1 to 2"):
            await why(hone, session.id, 3)
        assert (await why(hone, session.id, 1)).answer.number == 2


async def test_the_models_own_word_counts_as_its_word_and_leaves_the_conversation_alone(
    home: Path, tmp_path: Path
) -> None:
    model = Agent()
    async with opened(home, tmp_path, model=model) as hone:
        await taught(hone)
        session = await hone.session()
        await session.send("Where do I deploy for a first look?")
        before = (await hone.sessions.load(session.id)).transcript.head
        cited = await ask(hone, await why(hone))
        [named] = [each for each in cited.items if Method.CITATION in each.by]
        assert named.item.text == "The staging server is called heron."
        assert (await hone.sessions.load(session.id)).transcript.head == before
        prefix, asked = model.calls[-1]
        assert prefix == session.agent.prefix, "the fork has the same prefix, byte for byte"
        assert [node.hash for node in asked.nodes[:2]] == [node.hash for node in session.transcript.nodes]
        assert choose("none", cited.items) == []


async def test_with_an_embedder_an_entry_that_means_what_the_answer_says_counts_more(
    home: Path, tmp_path: Path
) -> None:
    entry, answer = "User is a vegetarian.", "How about a meatless lasagna with spinach?"
    async with opened(home, tmp_path, model=Scripted(lines(answer))) as hone:
        await hone.keeper.note([(USER, Add(entry)), (USER, Add("User lives in Turku."))], OWNER)
        await (await hone.session()).send("What shall I cook tonight?")
        found = await find_answer(hone.sessions)
        plain = {each.item.text: each.score for each in await judge(found)}
        near = {each.item.text: each.score for each in await judge(found, Told((entry, answer)))}
        assert near[entry] > plain[entry] + 0.1
        assert near["User lives in Turku."] == pytest.approx(plain["User lives in Turku."], abs=0.1)


ENTRY = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Cf", "Zl", "Zp", "Co", "Cn"]), min_size=1
).map(str.strip)
LINES = st.lists(ENTRY.filter(bool), min_size=1, max_size=3).map("\n".join)
PART = st.lists(LINES, max_size=4, unique=True).map(tuple)


@given(PART, PART, PART, st.data())
@settings(max_examples=60)
def test_leaving_out_an_entry_gives_the_bytes_of_a_prompt_that_never_had_it(
    user: tuple[str, ...], memory: tuple[str, ...], own: tuple[str, ...], data: st.DataObject
) -> None:
    trusted = instructions("AGENTS.md", "# Journal\n\n## About the user\n\n- Not an entry.")

    def prompt(snapshot: Snapshot) -> Prefix:
        around = surroundings(Path("/work"), NOON.date(), "Linux")
        sections = order_sections(journal=journal(snapshot), instructions=trusted, around=around)
        return compose("openai/m", sections, ())

    whole = prompt(Snapshot(memory, user, own))
    noted = find_noted(whole.system)
    assert sum(map(len, noted.values())) == len(memory) + len(user) + len(own)
    assert find_folder(change_folder(whole, Path("/elsewhere")).system) == "/elsewhere"
    assert "Not an entry." not in leave_out_instructions(whole).system
    if memory:
        at = data.draw(st.integers(0, len(memory) - 1))
        text = to_plain(noted["memory"][at])
        first = [to_plain(each) for each in noted["memory"]].index(text)
        kept = memory[:first] + memory[first + 1 :]
        assert leave_out_entry(whole, "memory", text) == prompt(Snapshot(kept, user, own))


def test_leaving_out_a_skill_takes_its_line_and_nothing_else() -> None:
    listed = [ListedSkill("one", "First.", "1"), ListedSkill("one-two", "Second: with a colon.", "2")]
    others = (journal(Snapshot(("one: an entry",))), surroundings(Path("/work"), NOON.date(), "Linux"))

    def prompt(*skills: ListedSkill) -> Prefix:
        return compose("openai/m", ("Hello.", index(skills, len(skills)), *others), ())

    whole = prompt(*listed)
    assert leave_out_skill(whole, "one") == prompt(listed[1])
    assert leave_out_skill(prompt(listed[0]), "one") == prompt()
    with pytest.raises(ValueError, match="three"):
        leave_out_skill(whole, "three")


TOLD = st.lists(st.tuples(st.sampled_from(["user", "memory", "project"]), LINES), max_size=3, unique=True)


@given(TOLD, TOLD, st.lists(st.sampled_from(["a-skill", "b-skill"]), unique=True))
@settings(max_examples=60)
def test_a_note_about_news_is_read_back_as_it_was_told(
    added: list[tuple[str, str]], removed: list[tuple[str, str]], names: list[str]
) -> None:
    skills = tuple(ListedSkill(name, "What it does.", "3") for name in names)
    news = News(ChangeId(9), tuple(added), tuple(removed), skills, ("gone-skill",))
    note = describe_news(news)
    assert note
    told = read_news(note)
    assert told.left + len(told.added) + len(told.removed) + len(told.skills) + len(told.gone) == (
        len(added) + len(removed) + len(names) + 1
    )
    if told.left:
        return
    assert (told.skills, told.gone) == (tuple((name, "What it does.") for name in names), ("gone-skill",))
    for part, text in told.added:
        fewer = read_news(leave_out_news(note, part, text))
        assert fewer.removed == told.removed
        assert (part, text) not in fewer.added
    assert read_news(leave_out_news(note, skill="gone-skill")).gone == ()
