"""L1, L7: answers hold as long as they say, a repository can only deny, and unreadable rules refuse."""

import asyncio
import json
from pathlib import Path

import pytest

from hone import Hone
from hone.core.errors import Refused, StoreError
from hone.core.messages import assistant
from hone.core.permissions import Action, Answer, Mode, Question, Request
from hone.core.permit import Effect
from hone.core.tool import Outcome
from hone.core.tool_context import ToolContext
from hone.files.documents import FileDocuments
from hone.models.scripted import Scripted, call, lines
from hone.runtime.permissions.approval import ProjectApprovals
from hone.runtime.permissions.project import StoredRules, read_project
from hone.runtime.permissions.rules import Rule, RuleSet, parse_rule
from hone.runtime.task_runner import ignore
from hone.runtime.trust import OwnersList
from hone.settings import Settings
from hone.settings.sections import PermissionSettings
from hone.tools.define import tool
from tests.allowed import permissions
from tests.rig import asked
from tests.tools.shells import Owner

WRITE = Request("write_file", Action.WRITE, "/elsewhere/x", "/elsewhere/x\n+ new")
RUN = Request("terminal", Action.RUN, "git push && ls", doubts=("It publishes.",))


async def answered(
    request: Request, answer: Answer, *, times: int = 2, attended: bool = True
) -> tuple[list[str], Owner]:
    owner = Owner(answer)
    allowed = permissions(Path("/work"), ask=owner.ask)
    return [await allowed.refusal(request, asked(), attended=attended) for _ in range(times)], owner


@pytest.mark.parametrize(
    ("answer", "said", "questions"),
    [
        (Answer.NO, "The user said no.", 2),
        (Answer("no", "use make deploy"), "The user said no: use make deploy.", 2),
        (Answer("nonsense"), "The user said no.", 2),
        (Answer.ONCE, "", 2),
        (Answer.SESSION, "", 1),
        (Answer.ALWAYS, "", 1),
    ],
)
@pytest.mark.parametrize("request_", [WRITE, RUN])
async def test_an_answer_holds_as_long_as_it_says(
    request_: Request, answer: Answer, said: str, questions: int
) -> None:
    texts, owner = await answered(request_, answer)
    assert texts == [said, said]
    assert len(owner.asked) == questions


async def test_a_question_shows_what_will_be_done_why_it_is_asked_and_the_exact_rules() -> None:
    _, owner = await answered(RUN, Answer.NO, times=1)
    assert owner.asked == [
        Question("Run this? It publishes.", "git push && ls", "terminal: git push\nterminal: ls")
    ]
    _, owner = await answered(WRITE, Answer.NO, times=1)
    expected = "Change this file? It is outside the working folder."
    assert owner.asked == [Question(expected, "/elsewhere/x\n+ new", "write_file: /elsewhere/x")]


async def test_where_nobody_is_there_nothing_is_asked_and_the_reason_is_told() -> None:
    texts, owner = await answered(WRITE, Answer.ALWAYS, times=1, attended=False)
    reason = "It is outside the working folder."
    assert texts == [f"This needs the user's consent, and nobody is there to ask. {reason}"]
    assert owner.asked == []
    alone = permissions(Path("/work"))
    assert await alone.refusal(WRITE, asked(), attended=True) == texts[0]
    assert alone.asked == 0


async def test_calls_that_ask_together_are_answered_by_one_answer() -> None:
    owner = Owner(Answer.SESSION)
    allowed = permissions(Path("/work"), ask=owner.ask)
    refusals = await asyncio.gather(*(allowed.refusal(WRITE, asked(), attended=True) for _ in range(5)))
    assert refusals == [""] * 5
    assert len(owner.asked) == allowed.asked == 1


async def test_an_answer_for_always_is_stored_for_its_folder_and_holds_in_the_next_process(
    home: Path, tmp_path: Path
) -> None:
    mine, other, target = tmp_path / "mine", tmp_path / "other", tmp_path / "target.txt"
    mine.mkdir()
    other.mkdir()

    async def write(folder: Path, owner: Owner) -> bool:
        target.unlink(missing_ok=True)
        script = lines(assistant(call("write_file", path=str(target), content="x")), "done")
        async with Hone(model=Scripted(script), folder=folder, ask=owner.ask) as hone:
            session = await hone.session()
            await session.send("go")
            assert session.asked == len(owner.asked)
        return target.exists()

    first, second, elsewhere = Owner(Answer.ALWAYS), Owner(Answer.NO), Owner(Answer.NO)
    assert await write(mine, first)
    assert await write(mine, second)
    assert not await write(other, elsewhere)
    assert [len(each.asked) for each in (first, second, elsewhere)] == [1, 0, 1]
    stored = json.loads((home / "permissions.json").read_text())
    assert stored == {str(mine): {"allow": [f"write_file: {target}"], "deny": []}}
    assert (home / "permissions.json").stat().st_mode & 0o077 == 0


async def test_a_home_that_cannot_be_written_keeps_the_answer_for_the_session(
    home: Path, tmp_path: Path
) -> None:
    (home / "permissions.json").mkdir()
    owner = Owner(Answer.ALWAYS)
    async with Hone(model=Scripted(lines("hi")), folder=tmp_path, ask=owner.ask) as hone:
        hone.permissions.rules = StoredRules(FileDocuments(tmp_path / "file"))
        (tmp_path / "file").write_text("")
        allowed = hone.permissions.create(tmp_path)
        for _ in range(2):
            assert await allowed.refusal(WRITE, asked(), attended=True) == ""
        assert len(owner.asked) == 1
        assert any("Your answer holds for this conversation." in each for each in hone.notices)


def approvals(home: Path) -> ProjectApprovals:
    return ProjectApprovals(OwnersList(FileDocuments(home), "approved.json"))


def project(folder: Path, text: str) -> Path:
    file = folder / ".hone" / "permissions.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    return file


FILE = 'allow = ["terminal: make *"]\ndeny = ["write_file: secret/**"]\n'
DENIAL, PERMISSION = parse_rule("write_file: secret/**"), parse_rule("terminal: make *")


def test_a_projects_file_denies_at_once_and_allows_only_as_it_was_approved(
    home: Path, tmp_path: Path
) -> None:
    mine, clone = tmp_path / "mine", tmp_path / "clone"
    for folder in (mine, clone):
        folder.mkdir()
        project(folder, FILE)
    known = approvals(home)
    assert known.rules(mine) == RuleSet((), (DENIAL,))
    assert "was not approved yet" in known.unapproved(mine)
    shown = read_project(mine)
    assert shown is not None
    known.approve(mine, shown)
    assert approvals(home).rules(mine) == RuleSet((PERMISSION,), (DENIAL,))
    assert known.unapproved(mine) == ""
    assert known.rules(clone) == RuleSet((), (DENIAL,)), "the same bytes elsewhere were not approved"
    project(mine, FILE + "# changed\n")
    assert known.rules(mine) == RuleSet((), (DENIAL,))
    assert "has changed since you approved it" in known.unapproved(mine)
    with pytest.raises(Refused, match="has changed meanwhile"):
        known.approve(mine, shown)
    project(mine, FILE)
    known.forget(mine)
    assert known.rules(mine) == RuleSet((), (DENIAL,))


CALLS = [
    call("read_file", path="a.txt"),
    call("write_file", path="a.txt", content="x"),
    call("patch", path="a.txt", find="a", replace="b"),
    call("search_files", pattern="a"),
    call("terminal", command="echo a > b"),
    call("execute_code", code="open('b', 'w')"),
    call("web_fetch", url="http://127.0.0.1/"),
    call("launch", rocket="V2"),
]
BROKEN = ["allow = [", 'deny = ["nonsense"]', "deny = 3", 'denny = ["terminal: *"]', "\xff\xfe", "[[deny]]"]


@tool(effects={Effect.WRITE})
def launch(rocket: str) -> str:
    """Launch a rocket."""
    return f"canary {rocket}"


async def attempt_all(folder: Path, mode: Mode) -> list[Outcome]:
    (folder / "a.txt").write_text("a canary\n")
    ask = Owner(Answer.ALWAYS).ask
    async with Hone(model=Scripted(lines("-")), folder=folder, mode=mode, ask=ask, tools=[launch]) as hone:
        agent = (await hone.session()).agent
        context = ToolContext(agent, asked(), ignore, hone.permissions.create(folder))
        return [await agent.toolbox[each.name].run(each, context) for each in CALLS]


def assert_refused(outcomes: list[Outcome], reason: str, folder: Path) -> None:
    for outcome in outcomes:
        assert outcome.failed
        assert reason in outcome.text
        assert "Traceback" not in outcome.text
        assert "canary" not in outcome.text
    assert (folder / "a.txt").read_text() == "a canary\n"
    assert not (folder / "b").exists()


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.FULL])
@pytest.mark.parametrize("text", BROKEN)
async def test_a_projects_file_that_cannot_be_read_refuses_every_call_with_a_sentence(
    text: str, mode: Mode, tmp_path: Path
) -> None:
    project(tmp_path, "").write_bytes(text.encode("latin-1"))
    outcomes = await attempt_all(tmp_path, mode)
    assert_refused(outcomes, ".hone/permissions.toml cannot be used", tmp_path)


@pytest.mark.parametrize("text", ["{", '{"": {"deny": ["nonsense"]}}', '{"": {"denny": []}}', "[]", "\xff"])
async def test_stored_rules_that_cannot_be_read_refuse_every_call_with_a_sentence(
    text: str, home: Path, tmp_path: Path
) -> None:
    file = home / "permissions.json"
    file.write_bytes(text.encode("latin-1"))
    assert_refused(await attempt_all(tmp_path, Mode.FULL), "permissions.json is damaged", tmp_path)
    with pytest.raises(StoreError):
        StoredRules(FileDocuments(file.parent)).add("", "deny", Rule("terminal", "x"))
    assert file.read_bytes() == text.encode("latin-1")


def test_a_link_out_of_the_folder_is_no_projects_file(tmp_path: Path) -> None:
    (tmp_path / "in" / ".hone").mkdir(parents=True)
    (tmp_path / "rules.toml").write_text(FILE)
    (tmp_path / "in" / ".hone" / "permissions.toml").symlink_to(tmp_path / "rules.toml")
    with pytest.raises(Refused, match="is a link out of this folder"):
        read_project(tmp_path / "in")


def test_two_processes_that_add_rules_keep_both(home: Path) -> None:
    path = home / "permissions.json"
    one, other = StoredRules(FileDocuments(path.parent)), StoredRules(FileDocuments(path.parent))
    rules = [Rule("terminal", f"make {number}") for number in range(20)]
    for number, rule in enumerate(rules):
        (one if number % 2 else other).add("/x", "allow", rule)
    assert one.of(Path("/x")).allow == tuple(rules)
    assert one.remove("/x", rules[0])
    assert not other.remove("/x", rules[0])
    assert other.of(Path("/x")).allow == tuple(rules[1:])


async def test_rules_of_the_settings_hold_in_every_folder(tmp_path: Path) -> None:
    settings = Settings(permissions=PermissionSettings(deny=("write_file: src/**",)))
    script = lines(assistant(call("write_file", path="src/a.py", content="x")), "done")
    async with Hone(model=Scripted(script), folder=tmp_path, settings=settings, mode="full") as hone:
        result = (await hone.run("go")).nodes[1].message.result
    assert result is not None
    assert result.text.endswith("src/a.py was not written. A rule denies it: write_file: src/**.")


async def test_a_plugins_question_is_answered_for_longer_by_a_rule_that_names_its_tool() -> None:
    owner = Owner(Answer.ALWAYS)
    allowed = permissions(ask=owner.ask)
    question = Question("Launch it?", "V2", "any\nrocket")
    assert await allowed.ask(question, "launch") == Answer.ALWAYS
    assert await allowed.ask(question, "launch") == Answer.SESSION
    assert [each.pattern for each in owner.asked] == ["launch: any rocket"]
    assert await permissions(mode=Mode.FULL).ask(question, "launch") == Answer.ONCE
    assert await permissions().ask(question, "launch") == Answer.NO
    denied = permissions(ask=owner.ask, mode=Mode.FULL, rules=RuleSet((), (Rule("launch", "*"),)))
    assert await denied.ask(question, "launch") == Answer.NO
