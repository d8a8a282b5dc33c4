"""What every search promises, line by line of the port."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hone.core.ids import SessionId
from hone.core.messages import Message, Thinking, ToolCall, answer, assistant, user
from hone.core.ports import Header, Sessions
from hone.core.prefix import Prefix
from hone.core.recall import NOTES, Query, Recall, SearchResult
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from tests.contract.kinds import KINDS, kept

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
PREFIX, OTHER = Prefix("scripted/one", "One."), Prefix("scripted/two", "Two.")
A, B, C = SessionId("a"), SessionId("b"), SessionId("c")
TALK = (
    user("The boiler in the cellar is leaking again. Whom did we call?"),
    assistant("Let me look."),
    assistant("It was Ernesto Vidal; he charged 120 euros."),
    user("Thanks. Now the birthday cake for Nadja."),
    assistant("A lemon cake with poppy seeds would suit her."),
)


@dataclass(frozen=True)
class Memory:
    sessions: Sessions
    recall: Recall

    async def keep(self, id: SessionId, *said: Message, at: datetime = NOW, **header: Any) -> Transcript:
        """A session of its own, or one that follows its parent's first messages."""
        base = Transcript(PREFIX.digest)
        if header.get("shared"):
            parent = await self.sessions.load(header["parent"])
            base = parent.transcript.upto(header["shared"])
        whole = told(base, *said, at=at)
        await self.sessions.start(Header(id, at, **header), PREFIX, whole.nodes[len(base) :])
        return whole

    async def search(self, words: str, **bounds: Any) -> SearchResult:
        return await self.recall.search(Query(words, **bounds))

    async def found(self, words: str, **bounds: Any) -> list[tuple[str, int]]:
        return [(hit.header.id, hit.passage.number) for hit in (await self.search(words, **bounds)).hits]


def told(transcript: Transcript, *said: Message, at: datetime = NOW) -> Transcript:
    for message in said:
        trust = {"user": Trust.OWNER, "assistant": Trust.AGENT, "tool": Trust.FOREIGN}[message.role]
        transcript = transcript.then(message, trust, at)
    return transcript


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with kept(request.param, tmp_path) as stores:
        yield Memory(stores.sessions, stores.recall)


@pytest.mark.parametrize("words", ["", "   ", '"', "*", "?!", '""', "\x00", "\udcff"])
async def test_a_query_without_words_finds_nothing_and_says_so(memory: Memory, words: str) -> None:
    await memory.keep(A, *TALK)
    found = await memory.search(words)
    assert (found.hits, found.waiting) == ((), 0)


async def test_an_empty_answer_tells_what_was_tried_and_what_was_not(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    found = await memory.search("what was that about the submarine?")
    assert (found.hits, found.tried) == ((), ("submarine",))
    assert {"what", "was", "that", "the"} <= set(found.dropped)


@pytest.mark.parametrize(
    "words",
    [
        "NEAR(boiler cake)",
        "text:boiler",
        "boiler AND",
        "(boiler",
        "boiler^2",
        "-boiler",
        "boiler OR",
        "^boiler",
        "'boiler",
    ],
)
async def test_nothing_typed_is_taken_for_a_language_of_queries(memory: Memory, words: str) -> None:
    await memory.keep(A, *TALK)
    assert (A, 1) in await memory.found(words)


async def test_a_whole_question_finds_the_message_and_its_neighbours_count(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    await memory.keep(B, user("What about lunch?"), assistant("Soup."))
    found = await memory.found("who was it that we called about the leaking boiler?")
    assert found[0] == (A, 1)
    assert (A, 2) in found
    assert not [id for id, _ in found if id == B]


async def test_what_is_said_everywhere_gathers_nothing_from_its_neighbours(memory: Memory) -> None:
    """Else "go on" would stand above the one message that answers."""
    for number in range(8):
        asked = user(f"Harbor report {number}."), assistant("Done."), user("go on")
        await memory.keep(SessionId(f"s{number}"), *asked)
    await memory.keep(A, user("go on"), assistant("The harbor master is Ines Quint."), user("go on"))
    found = await memory.search("who is the master of the harbor?")
    assert (found.hits[0].header.id, found.hits[0].passage.number) == (A, 2)
    assert not {hit.passage.text for hit in found.hits} & {"go on", "Done."}


async def test_a_hit_comes_with_its_neighbours_number_label_and_time(memory: Memory) -> None:
    await memory.keep(A, *TALK, title="House")
    hit = (await memory.search("Ernesto")).hits[0]
    assert (hit.header.title, hit.tree, hit.left) == ("House", A, False)
    assert (hit.passage.number, hit.passage.trust, hit.passage.at) == (3, Trust.AGENT, NOW)
    assert hit.passage.text == TALK[2].text
    beside = [(each.number, each.trust) for each in (hit.before, hit.after) if each]
    assert beside == [(2, Trust.AGENT), (4, Trust.OWNER)]


async def test_the_first_and_the_last_message_have_one_neighbour(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    first = (await memory.search('"boiler in the cellar"')).hits[0]
    last = (await memory.search('"lemon cake"')).hits[0]
    assert (first.before, last.after) == (None, None)


async def test_forms_of_a_word_and_accents_do_not_matter(memory: Memory) -> None:
    await memory.keep(A, user("We visited Café Müller yesterday."), assistant("Nice."))
    for words in ("cafe muller", "CAFÉ MÜLLER", "visiting"):
        assert (await memory.found(words))[0] == (A, 1), words


@pytest.mark.parametrize(
    ("question", "text"),
    [
        (
            "was haben wir über die Rechnungen von der Werkstatt gesagt?",
            "Die Rechnung der Werkstatt kam heute.",
        ),
        ("qu'est-ce que nous avons dit des factures du garage ?", "La facture du garage est arrivée."),
        ("¿qué dijimos de las facturas del taller?", "Llegó la factura del taller."),
    ],
)
async def test_small_words_and_endings_of_other_languages_do_not_lead_astray(
    memory: Memory, question: str, text: str
) -> None:
    await memory.keep(A, user("was wir haben über die von der gesagt"), user("nous avons dit des du que"))
    await memory.keep(B, user("qué dijimos de las del"), user("the very same"))
    await memory.keep(C, user(text))
    assert (await memory.found(question))[0] == (C, 1)


async def test_a_word_that_is_small_elsewhere_counts_in_english(memory: Memory) -> None:
    await memory.keep(A, user("The war diary is in the attic."), assistant("Which one?"))
    assert (await memory.found("where is the war?"))[0] == (A, 1)


async def test_a_phrase_must_stand_as_it_is_written_and_relaxes_if_it_stands_nowhere(memory: Memory) -> None:
    await memory.keep(A, user("red car, blue house"), assistant("blue car"), user("nothing of it"))
    assert await memory.found('"blue car"') == [(A, 2)]
    assert {(A, 1), (A, 2)} <= set(await memory.found('"car house"'))


async def test_a_star_stands_for_the_rest_of_a_word(memory: Memory) -> None:
    await memory.keep(A, user("The deployment failed."), assistant("Which?"))
    assert (await memory.found("deploym*"))[0] == (A, 1)
    assert await memory.found("deploym") == []


@pytest.mark.parametrize("word", ["conversation", "relativity", "nationalizations", "hopefulness"])
async def test_a_star_may_stand_anywhere_in_a_word(memory: Memory, word: str) -> None:
    await memory.keep(A, user(f"Something about {word}."), assistant("Which?"))
    for length in range(3, len(word) + 1):
        assert (A, 1) in await memory.found(f"{word[:length]}*"), length


async def test_scripts_without_spaces_are_found_by_any_two_letters_or_one(memory: Memory) -> None:
    await memory.keep(A, user("我们昨天在东京吃了拉面。"), assistant("好吃吗?"))
    await memory.keep(B, user("京都很美,东边有山"), assistant("서울에서 만났어요"))
    assert (await memory.found("东京"))[0] == (A, 1)
    assert (await memory.found("在东京吃什么"))[0] == (A, 1)
    assert (await memory.found("面"))[0] == (A, 1)
    assert (await memory.found("서울"))[0] == (B, 2)
    assert (B, 1) not in (await memory.found('"东京"'))


RUNS = {
    "数据备份": ("每晚两点做数据备份。", "备份的数据在东京。", "备份昨晚失败了。"),
    "数据库": ("数据库在东京。", "据库,数据", "这些数据很旧。"),
    "データベース": ("データベースは金曜日に移す。", "データのベース", "テニスのコース"),
    "ひらがな": ("ひらがなを練習する。", "がなとひら", "ひらめき"),
    "데이터베이스": ("데이터베이스를 옮깁니다.", "데이터 베이스 백업", "베이컨과 데이지"),
    "Docker部署": ("用Docker部署服务。", "部署Docker镜像。", "Docker很慢。"),
}


@pytest.mark.parametrize("run", RUNS)
async def test_letters_that_stand_together_come_first_then_what_holds_more_of_them(
    memory: Memory, run: str
) -> None:
    for name, text in zip((C, A, B), RUNS[run], strict=True):
        await memory.keep(name, user(text), assistant("好的。"))
    hits = (await memory.search(run)).hits
    assert [(hit.header.id, hit.passage.number) for hit in hits][:2] == [(C, 1), (A, 1)]
    assert {hit.passage.number for hit in hits} == {1}, "what is beside a hit is shown with it"
    assert hits[0].after


async def test_what_holds_few_of_the_letters_is_found_too_unless_enough_holds_all(memory: Memory) -> None:
    for number in range(3):
        await memory.keep(SessionId(f"whole-{number}"), user(f"数据备份 {number}"))
    await memory.keep(A, user("备份昨晚失败了。"), assistant("好的。"))
    found = await memory.search("数据备份")
    assert [hit.header.id for hit in found.hits][3:] == [A]
    assert (found.hits[3].before, found.hits[3].after) == (None, None)
    assert A not in [hit.header.id for hit in (await memory.search("数据备份", limit=3)).hits]


async def test_letters_that_only_the_asker_holds_hide_nothing_of_the_others(memory: Memory) -> None:
    await memory.keep(A, user("备份昨晚失败了。"), assistant("磁盘满了。"))
    asked = await memory.keep(B, user("数据备份怎么样了?"))
    [*hits] = (await memory.search("数据备份", seen=frozenset(node.digest for node in asked.nodes))).hits
    assert hits[0].header.id == A
    assert hits[0].after


async def test_calls_and_the_beginning_of_results_are_found_thoughts_are_not(memory: Memory) -> None:
    call = ToolCall("1", "read_file", '{"path":"/srv/gateway.toml"}')
    result = "port = 8443\n" + "filler " * 2_000 + "omega"
    await memory.keep(A, user("go"), assistant(Thinking("zeppelin", "seal"), call), answer(call, result))
    assert (await memory.found("gateway.toml"))[0] == (A, 2)
    assert (await memory.found("8443"))[0] == (A, 3)
    assert await memory.found("omega zeppelin") == []


async def test_a_month_or_day_in_the_question_brings_what_was_said_then(memory: Memory) -> None:
    for id, month in ((A, 1), (B, 3), (C, 5)):
        words = user(f"My plan: run {month} kilometres."), user(f"Good night {month}.")
        await memory.keep(id, *words, at=datetime(2026, month, 4, tzinfo=UTC))
    today = date(2026, 6, 1)
    for when, id in (("in early March", B), ("on January 4th", A), ("on 2026-05-04", C), ("last month", C)):
        assert (await memory.found(f"what was my plan {when}?", today=today))[0] == (id, 1), when
    assert sorted(await memory.found("2026-03-04", today=today)) == [(B, 1), (B, 2)]


async def test_bounds_leave_out_what_was_said_before_or_after(memory: Memory) -> None:
    days = [NOW - timedelta(days=age) for age in (400, 20, 1)]
    for id, at in zip((A, B, C), days, strict=True):
        await memory.keep(id, user(f"invoice {id}"), at=at)
    today = NOW.date()
    assert await memory.found("invoice", since=NOW - timedelta(days=30), today=today) != []
    recent = await memory.found("invoice", since=NOW - timedelta(days=30), today=today)
    assert {id for id, _ in recent} == {B, C}
    assert {id for id, _ in await memory.found("invoice", until=NOW - timedelta(days=30))} == {A}
    long = await memory.found("invoice", since=NOW - timedelta(days=390))
    assert {id for id, _ in long} == {B, C}


async def test_a_rare_word_of_another_time_does_not_hide_what_is_within_the_bounds(memory: Memory) -> None:
    await memory.keep(A, user("The xylophone was at the meeting."), at=NOW - timedelta(days=400))
    for number in range(30):
        at = NOW - timedelta(days=number)
        await memory.keep(SessionId(f"s{number}"), user(f"A meeting, the {number}th."), at=at)
    found = await memory.found("xylophone meeting", since=NOW - timedelta(days=3), today=NOW.date())
    assert {id for id, _ in found} == {"s0", "s1", "s2", "s3"}


async def test_what_was_said_again_is_found_by_each_of_its_days(memory: Memory) -> None:
    first, again = datetime(2024, 3, 4, tzinfo=UTC), datetime(2026, 2, 20, tzinfo=UTC)
    await memory.keep(A, user("Pay the rent."), at=first)
    await memory.keep(B, user("Pay the rent."), at=again)
    assert await memory.found("rent", since=NOW - timedelta(days=30), today=NOW.date()) == [(B, 1)]
    assert await memory.found("rent", until=NOW - timedelta(days=300)) == [(A, 1)]
    assert await memory.found("rent", since=first + timedelta(days=1), until=again - timedelta(days=1)) == []
    assert (await memory.found("what was with the rent in February?", today=NOW.date()))[0] == (B, 1)
    assert await memory.found("2024-03-04", today=NOW.date()) == [(A, 1)]


async def test_who_is_meant_to_have_said_it_comes_first(memory: Memory) -> None:
    await memory.keep(A, user("pumpkin soup"), assistant("pumpkin soup!"))
    assert (await memory.found("what did I say of pumpkin soup?"))[0] == (A, 1)
    assert (await memory.found("what did you say of pumpkin soup?"))[0] == (A, 2)


async def test_who_is_named_counts_where_messages_begin_with_names(memory: Memory) -> None:
    await memory.keep(
        A, user("Caroline: Melanie knows the pottery class."), user("Never mind."), user("Right.")
    )
    await memory.keep(B, user("Melanie: I left the pottery class."), user("So."), user("Well."))
    assert (await memory.found("why did Melanie leave the pottery class?"))[0] == (B, 1)


async def test_what_counts_for_more_or_less_does_so_by_the_same_weight_everywhere(memory: Memory) -> None:
    """Each message stands alone, so that nothing but the weight tells two of them apart."""
    today, march = date(2026, 6, 1), datetime(2026, 3, 4, tzinfo=UTC)
    await memory.keep(A, user("pumpkin soup"), at=march)
    await memory.keep(B, assistant("pumpkin soup"), at=NOW + timedelta(days=60))
    call = ToolCall("1", "look", "{}")
    await memory.keep(SessionId("d"), answer(call, "pumpkin soup"), at=NOW + timedelta(days=60))

    async def scores(words: str) -> dict[str, float]:
        found = await memory.search(words, today=today)
        return {hit.header.id: hit.score for hit in found.hits}

    plain, spoken, timely = [
        await scores(f"{asked} pumpkin soup{when}")
        for asked, when in (("", ""), ("did I say", ""), ("", " on 2026-03-04"))
    ]
    assert spoken[A] / spoken[B] == pytest.approx(1.4)
    assert timely[A] / timely[B] == pytest.approx(1.6)
    assert plain["d"] / plain[A] == pytest.approx(0.8)
    await memory.keep(SessionId("e"), user("rhubarb"), assistant("Yes?"))
    beside = [hit.score for hit in (await memory.search("rhubarb")).hits]
    assert beside[1] / beside[0] == pytest.approx(0.45 + 0.1)


async def test_what_is_before_the_askers_eyes_is_left_out(memory: Memory) -> None:
    whole = await memory.keep(A, *TALK)
    seen = frozenset(node.digest for node in whole.nodes)
    assert await memory.found("boiler cake", seen=seen) == []
    assert (await memory.found("boiler", seen=seen - {whole.nodes[0].digest}))[0] == (A, 1)


async def test_the_limit_holds_and_the_best_come_first(memory: Memory) -> None:
    for number in range(12):
        await memory.keep(SessionId(f"s{number}"), user(f"tax return {number}"))
    await memory.keep(A, user("tax return for the bakery"))
    found = await memory.found("tax return bakery", limit=3)
    assert (len(found), found[0]) == (3, (A, 1))


async def test_what_a_branch_or_fork_shares_is_found_once_where_it_was_said(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    await memory.keep(B, user("And Ernesto's phone number?"), parent=A, shared=3)
    await memory.keep(
        C,
        user("What is worth keeping?"),
        assistant("Ernesto repairs."),
        parent=A,
        shared=5,
        origin=Origin.REVIEW,
    )
    found = await memory.search("Ernesto", asides=True)
    assert sorted(
        (hit.header.id, hit.passage.number) for hit in found.hits if "Ernesto" in hit.passage.text
    ) == [
        (A, 3),
        (B, 4),
        (C, 7),
    ]
    assert {hit.tree for hit in found.hits} == {A}
    assert len(found.trees) == 1


async def test_what_hone_says_to_itself_is_found_only_if_it_is_asked_for(memory: Memory) -> None:
    whole = await memory.keep(A, *TALK)
    await memory.keep(B, user("What of Ernesto is worth keeping?"), parent=A, shared=5, origin=Origin.REVIEW)
    await memory.keep(C, user("Ask Ernesto for his price."), parent=A, origin=Origin.DELEGATE)
    short = told(Transcript(PREFIX.digest), TALK[0], assistant(f"{NOTES}\n\nErnesto was named."))
    short = short.then(user("Continue with Ernesto."), Trust.AGENT, NOW)
    await memory.sessions.shorten(A, whole.head, short)
    assert {hit.passage.text for hit in (await memory.search('"Ernesto"')).hits} == {TALK[2].text}
    every = {hit.passage.text for hit in (await memory.search('"Ernesto"', asides=True)).hits}
    assert len(every) == 5


async def test_a_neighbour_is_of_the_same_session_not_of_a_fork(memory: Memory) -> None:
    await memory.keep(A, *TALK[:3])
    await memory.keep(B, user("What is worth keeping?"), parent=A, shared=3, origin=Origin.REVIEW)
    assert (await memory.search('"Ernesto Vidal"')).hits[0].after is None
    longer = told((await memory.sessions.load(A)).transcript, TALK[3])
    await memory.sessions.append(A, longer.nodes[3:])
    after = (await memory.search('"Ernesto Vidal"')).hits[0].after
    assert after is not None
    assert after.text == TALK[3].text


async def test_no_conversation_fills_the_list(memory: Memory) -> None:
    await memory.keep(A, *(user(f"harbor {number}") for number in range(12)))
    for number in range(6):
        await memory.keep(SessionId(f"s{number}"), user(f"The harbor, the {number}th."))
    found = await memory.found("harbor", limit=10)
    assert len([id for id, _ in found if id == A]) == 7
    assert len({id for id, _ in found}) == 4
    assert len(await memory.found("harbor", limit=30)) == 18


async def test_a_hit_is_called_by_its_title_or_by_the_users_first_words(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    await memory.keep(B, user("Which boiler?"), assistant("The boiler."), title="Heating")
    titles = {hit.header.id: hit.title for hit in (await memory.search("boiler")).hits}
    assert titles == {A: TALK[0].text, B: "Heating"}


async def test_what_a_branch_shares_is_found_in_it_when_the_original_is_gone(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    await memory.keep(B, user("And then?"), parent=A, shared=3)
    await memory.sessions.delete(A)
    assert (await memory.found("Ernesto"))[0] == (B, 3)
    assert await memory.found("lemon") == []
    await memory.sessions.delete(B)
    assert await memory.found("Ernesto boiler") == []


async def test_a_moved_session_is_found_once_with_what_follows(memory: Memory) -> None:
    whole = await memory.keep(A, *TALK)
    moved = whole.rooted(OTHER.digest)
    await memory.sessions.move(A, OTHER, moved)
    longer = told(moved, user("Call Ernesto tomorrow."))
    await memory.sessions.append(A, longer.nodes[5:])
    found = [(hit.header.id, hit.passage.number, hit.left) for hit in (await memory.search('"Ernesto"')).hits]
    assert sorted(found) == [(A, 3, False), (A, 6, False)]


async def test_what_notes_stand_for_by_now_is_still_found_and_marked(memory: Memory) -> None:
    whole = await memory.keep(A, *TALK)
    short = told(Transcript(PREFIX.digest), TALK[0], assistant("Notes: a plumber was named."), TALK[4])
    await memory.sessions.shorten(A, whole.head, short)
    hits = {hit.passage.text: hit for hit in (await memory.search("Ernesto plumber boiler lemon")).hits}
    gone = hits[TALK[2].text]
    assert (gone.header.id, gone.passage.number, gone.left) == (A, 3, True)
    assert [hits[each.text].left for each in (TALK[0], TALK[4])] == [False, False]
    assert hits["Notes: a plumber was named."].passage.number == 2
    assert hits[TALK[4].text].passage.number == 3


async def test_the_same_words_in_two_conversations_are_found_in_both(memory: Memory) -> None:
    await memory.keep(A, user("Order more printer toner."))
    await memory.keep(B, user("Order more printer toner."))
    assert sorted(await memory.found("printer toner")) == [(A, 1), (B, 1)]


async def test_a_hit_shows_the_title_of_today(memory: Memory) -> None:
    await memory.keep(A, *TALK)
    await memory.sessions.rename(A, "Heating")
    assert (await memory.search("boiler")).hits[0].header == replace(Header(A, NOW), title="Heating")


async def test_examples_from_a_template_are_not_found_and_are_no_neighbours(memory: Memory) -> None:
    call = ToolCall("1", "read_file", '{"path":"boiler.txt"}')
    there = (
        user("boiler"),
        assistant(call),
        answer(call, "The boiler leaks."),
        assistant("End of the boiler."),
    )
    examples = [replace(message, template="boilers") for message in there]
    await memory.keep(A, *examples, user("What leaks?"), assistant("The boiler."))
    assert await memory.found("boiler") == [(A, 6), (A, 5)]
    assert await memory.found("read_file path") == []
    (hit, *_) = (await memory.search('"What leaks"')).hits
    assert (hit.passage.number, hit.before) == (5, None)
