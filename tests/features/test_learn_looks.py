"""F4, E1: imported conversations are counted, put together and estimated by the rules of Hone's own."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from hone.core.ids import SessionId
from hone.core.jobs import ENOUGH, TOGETHER, PendingLook, count_topics
from hone.core.messages import Message, Role, ToolResult, assistant, user
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.imports.estimating import ANSWER, Estimate, ReviewModel, estimate
from hone.features.imports.learn_state import LearnState, find_changed, mark_files
from hone.features.imports.looks import LookPlan
from hone.features.imports.sources import default_folder, recognize, source_files
from hone.learning.lookback import LATEST
from hone.models.scripted import call
from hone.models.wrappers import Price
from hone.runtime.triggers import FIXED, configure_topics
from hone.settings.sections import Learning
from tests.features import others

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLAN = LookPlan(configure_topics(Learning()))
ROOT = Prefix("imported/claude-code", "").digest


def talk(*turns: str, voice: Trust = Trust.OWNER, calls: int = 0, failing: bool = False) -> Transcript:
    """A conversation in which each turn has so many calls, the first of which may fail."""
    made = Transcript(ROOT)
    for words in turns:
        made = made.then(user(words), voice, NOON)
        for number in range(calls):
            made = made.then(assistant(call("Bash", command="ls")), Trust.AGENT, NOON)
            id = made.nodes[-1].message.calls[0].id
            result = ToolResult(id, "done", failed=failing and number == 0)
            made = made.then(Message(Role.TOOL, (result,)), Trust.FOREIGN, NOON)
        made = made.then(assistant("Fine."), Trust.AGENT, NOON)
    return made


@pytest.mark.parametrize(
    ("line", "cue", "turns"),
    [
        (talk("What is 2 + 2?"), "", 1),
        (talk("No, that is wrong. Use tabs."), "a correction", 1),
        (talk("Show it.", calls=2, failing=True), FIXED, 1),
        (talk("Show it.", calls=10), "10 tool iterations", 1),
        (talk(*["Go on."] * 10), "10 turns", 10),
        (talk("I live in Bergen."), "a statement about the user", 3),
    ],
)
def test_the_same_cues_and_counts_make_it_due(line: Transcript, cue: str, turns: int) -> None:
    look = PLAN.look(line)
    assert look
    assert (look.cue, look.turns) == (cue, turns)
    assert look.at == NOON + timedelta(seconds=LATEST), "it may go on over there"
    assert look.tainted == any(node.trust is Trust.FOREIGN for node in line.nodes)


def test_only_what_is_new_counts_and_nothing_without_a_persons_words() -> None:
    line = talk("No, that is wrong. Use tabs.", "What is 2 + 2?")
    later = PLAN.look(line, 2)
    assert later
    assert (later.cue, later.turns) == ("", 1)
    assert PLAN.look(line, len(line)) is None
    assert LookPlan(configure_topics(Learning(review="off"))).look(line) is None
    foreign = PLAN.look(talk("Remember: use tabs.", voice=Trust.FOREIGN))
    assert foreign
    assert (foreign.cue, foreign.turns, foreign.tainted) == ("", 1, True)
    mixed = talk("Use tabs.").then(user("a summary of mine"), Trust.FOREIGN, NOON)
    assert PLAN.look(mixed, 2) is None


def test_counters_go_on_where_the_last_import_left_them() -> None:
    line = talk("Show it.", calls=6)
    counters, due, _ = count_topics({}, PLAN.count_new(line, 0))
    assert (counters["skills"], due) == (6, frozenset())
    counters, due, why = count_topics(counters, PLAN.count_new(line, 0))
    assert (counters["skills"], due, why) == (0, frozenset({"skills"}), "10 tool iterations")


def pending(name: str, folder: str = "/a", turns: int = 1, due: datetime = NOON) -> PendingLook:
    return PendingLook(SessionId(name), SessionId(name), 2, folder, due, "", turns)


def test_small_ones_of_a_folder_are_one_review_and_the_price_is_that_of_the_table() -> None:
    small = [pending(f"s{number}") for number in range(TOGETHER)]
    large, lonely = pending("large", turns=ENOUGH), pending("lonely", "/b")
    going = pending("going", turns=ENOUGH, due=NOON + timedelta(minutes=1))
    new = {each.session: (each, 4_000) for each in (*small, large, lonely, going)}
    model = ReviewModel("a/b", Price(2.0, 10.0, 0.2, 2.5), prefix=8_000)
    made = estimate(new, (), model, NOON, first=False)
    tokens = (8_000 + 4_000 * TOGETHER) // 4 + (8_000 + 4_000) // 4
    cost = (tokens * 2.0 + 2 * ANSWER * 10.0) / 1_000_000
    assert replace(made, cost=None) == Estimate(2, 2, tokens, 2 * ANSWER, "a/b")
    assert made.cost == pytest.approx(cost)
    assert estimate(new, (), ReviewModel("a/b"), NOON, first=False).cost is None
    beside = [pending("here", "/b", turns=3)]
    assert estimate(new, beside, model, NOON, first=False).reviews == 3
    assert estimate({}, beside, model, NOON, first=False).reviews == 0


def test_an_answer_is_remembered_for_one_place_and_another_answer_reads_everything_again(
    tmp_path: Path,
) -> None:
    home, there = tmp_path / "home", others.write(tmp_path / "there", "claude-code")
    state = LearnState(home)
    assert state.find("claude-code", there) is None
    files = source_files("claude-code", there)
    state.note(state.answer("claude-code", there, mine=True), mark_files(files))
    known = state.find("claude-code", there)
    assert known
    assert (known.mine, find_changed("claude-code", files, known.marks)) == (True, [])
    assert state.find("codex", there) is state.find("claude-code", home) is None
    assert state.answer("claude-code", there, mine=True).marks == known.marks
    assert state.answer("claude-code", there, mine=False).marks == {}
    (home / "learned.json").write_text("{broken")
    assert state.find("claude-code", there) is None, "then the owner is asked again"


@pytest.mark.parametrize("source", ["claude-code", "codex", "hermes", "opencode", "openai"])
def test_a_path_tells_which_agent_wrote_it(source: str, tmp_path: Path) -> None:
    path = others.write(tmp_path / "there", source)
    assert recognize(path) == source


def test_each_agents_folder_is_where_it_says() -> None:
    env = {"HOME": "/h"}
    assert str(default_folder("claude-code", env)) == "/h/.claude"
    assert str(default_folder("codex", {**env, "CODEX_HOME": "/c"})) == "/c"
    assert str(default_folder("hermes", env)) == "/h/.hermes"
    assert str(default_folder("opencode", env)) == "/h/.local/share/opencode"
