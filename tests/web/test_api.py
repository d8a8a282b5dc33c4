"""I3: what the page reads and does, over HTTP: the story of learning, edits that meet, a watched chat."""

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path

import pytest

from hone.core.ids import SessionId
from hone.core.ledger import MEMORY, Actor
from hone.core.ledger import USER as PROFILE
from hone.core.messages import Message, Role, assistant, digest
from hone.core.model import Usage
from hone.core.ports import Spending
from hone.core.turn import Origin
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Arm, Check, Lesson, LessonKind, Run, Study, Task
from hone.files.documents import FileDocuments
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.knowledge.skills.facts import content_digest
from hone.models.scripted import call, lines, rounds, rules
from hone.settings import Settings
from hone.web.app import operations
from tests import databases
from tests.docs.pages import ROOT
from tests.faults.furnish import furnish, provider
from tests.faults.points.knowledge import MERGED, proposed
from tests.given import NOON
from tests.web.rig import Running, listen, running

LIKE = "I like short answers."
SKILL = """\
---
name: csv-import
description: Load a CSV export and check the sums.
---

1. Look at the separator.
"""


def tale(messages: Sequence[Message]) -> Message:
    """Works with a tool; asked to look back, it keeps what the owner said and proposes what a page said."""
    asked = max(at for at, message in enumerate(messages) if message.role is Role.USER)
    words, since = messages[asked].text, messages[asked + 1 :]
    if "look back over" in words and not since:
        return assistant(
            call("memory", action="add", target="user", text=LIKE, evidence=[LIKE]),
            call("memory", action="add", target="memory", text="The port is 99.", evidence=["#3"]),
        )
    if "look" in words and not since:
        return assistant("I look.", call("read_file", path="here.txt"))
    return assistant("Done.")


async def chatted(visit: Running, text: str, session: str = "") -> str:
    """A whole turn. Gives the session."""
    path = f"/api/sessions/{session}/messages" if session else "/api/sessions"
    id = (await visit.post(path, text=text))["session"]
    heard = await listen(visit.client, f"/api/sessions/{id}/events", "ended")
    assert heard.events[-1][2]["stop"] == "answered", heard.events
    return str(id)


@pytest.fixture(params=["sqlite", "postgres"])
def stored(request: pytest.FixtureRequest) -> Iterator[Settings]:
    """Settings that keep everything in the home, or in a database elsewhere."""
    with ExitStack() as stack:
        is_elsewhere = request.param == "postgres"
        yield Settings(database=stack.enter_context(databases.new_database()) if is_elsewhere else "")


async def test_the_story_of_learning_is_told_approved_and_undone(
    home: Path, tmp_path: Path, stored: Settings
) -> None:
    (tmp_path / "here.txt").write_text("the port is 99\n")
    async with running(home, tmp_path, tale, settings=stored) as visit:
        session = await chatted(visit, f"{LIKE} Please look.")
        mark = (await visit.get("/api/status"))["mark"]
        review = await visit.post(f"/api/sessions/{session}/review", topics=["memory"])
        learned = (await listen(visit.client, "/api/events", "learned", since=mark)).events[-1][2]
        assert learned["line"] == f'✎ learned about you: "{LIKE}" · undo 1\n✎ 1 lesson waits (pending)'
        assert [(each["text"], each["standing"]) for each in learned["lessons"]] == [
            (LIKE, "active"),
            ("The port is 99.", "pending"),
        ]
        assert (learned["review"], learned["waiting"]) == (review["id"], 1)
        timeline = (await visit.get("/api/changes"))["changes"]
        assert [(each["id"], each["actor"], each["standing"]) for each in timeline] == [
            (2, "review", "pending"),
            (1, "review", "active"),
        ]
        one = await visit.get("/api/changes/1")
        assert one["rows"][-1] == {"sign": "+", "text": f"+- {LIKE}"}
        assert one["evidence"][0]["words"] == f"“{LIKE} Please look.”"
        assert (await visit.get("/api/changes", session=session))["changes"] != []
        [waiting] = (await visit.get("/api/pending"))["changes"]
        wrong = await visit.client.post("/api/changes/2/approve", json={"seen": one["seen"]})
        assert (wrong.status_code, wrong.json()["error"]["type"]) == (409, "conflict")
        await visit.post("/api/changes/2/approve", seen=waiting["seen"])
        assert await visit.state.hone.keeper.text(MEMORY) == "- The port is 99.\n"
        assert (home / "MEMORY.md").exists() is not bool(stored.database), "elsewhere there are no files"
        undone = await visit.post("/api/changes/1/undo")
        assert (undone["deed"], undone["about"]) == ("undo", 1)
        assert not (home / "USER.md").exists()
        again = await visit.client.post("/api/changes/1/undo", json={})
        assert (again.status_code, again.json()["error"]["type"]) == (422, "refused")
        [told] = (await visit.get("/api/reviews"))["reviews"]
        assert (told["state"], told["changes"], told["session"]) == ("done", [1, 2], session)
        whole = await visit.get(f"/api/reviews/{told['id']}")
        assert [each["role"] for each in whole["said"]][:2] == ["user", "assistant"]
        assert [each["id"] for each in whole["made"]] == [1, 2]
        tree = await visit.get(f"/api/sessions/{session}/tree")
        assert {each["origin"] for each in tree["sessions"]} == {"user", "review"}
        assert [each["id"] for each in (await visit.get("/api/changes", before=3, limit=1))["changes"]] == [2]


async def test_changes_that_belong_together_are_shown_together_and_approved_as_shown(
    tmp_path: Path,
) -> None:
    await proposed(tmp_path)
    home = tmp_path / "home"
    async with running(home, tmp_path) as visit:
        [first] = (await visit.get("/api/pending"))["changes"]
        members = [first, *first["others"]]
        assert sorted(each["target"] for each in members) == sorted(f"skill:{name}" for name in MERGED)
        assert all(each["rows"] for each in members)
        other = await visit.get(f"/api/changes/{first['others'][0]['id']}")
        assert other["seen"] == first["seen"]
        wrong = await visit.client.post(f"/api/changes/{first['id']}/approve", json={"seen": "0" * 64})
        assert wrong.status_code == 409
        assert not (home / "skills" / MERGED[2]).exists()
        await visit.post(f"/api/changes/{first['id']}/approve", seen=first["seen"])
        assert (home / "skills" / MERGED[2] / "SKILL.md").exists()
        assert (await visit.get("/api/pending"))["changes"] == []


async def test_what_experiments_found_stands_beside_the_lesson(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        await visit.post("/api/skills", name="csv-import", text=SKILL)
        await visit.post("/api/journal/user", edits=[{"action": "add", "text": LIKE}])
        files = await visit.state.hone.library.files("csv-import")
        studies = Studies(FileDocuments(home), home)
        studies.add(Task("rows", SessionId("0a1b2c3d4e"), NOON, "/nowhere", "Count.", Check(text="3")))
        for lesson in (
            Lesson(LessonKind.SKILL, "csv-import", content_digest(files)),
            Lesson(LessonKind.ENTRY, PROFILE, digest(LIKE.encode())),
        ):
            study = studies.study(Study("rows", lesson, "openai/m", NOON))
            for pair in range(1, 21):
                for arm in Arm:
                    study = studies.append(
                        study, Run(pair, arm, arm is Arm.WITH, 1, 0, 0, 1, 0.1, 1, 10, 0.1)
                    )
        [line] = (await visit.get("/api/skills/csv-import"))["measured"]
        [part] = [each for each in (await visit.get("/api/journal"))["parts"] if each["part"] == "user"]
        assert line.startswith("helps: experiment rows: success +100 points")
        assert part["entries"][0]["measured"] == [line]


async def test_what_was_said_is_found_and_what_is_not_there_is_explained(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        session = await chatted(visit, "The boiler is in the cellar.")
        hits = (await visit.get("/api/search", query="where is the boiler?"))["hits"]
        assert [each["session"] for each in hits] == [session, session]  # the answer says it again
        [hit] = [each for each in hits if each["passage"]["number"] == 1]
        assert hit["passage"]["text"] == "The boiler is in the cellar."
        assert ["boiler", True] in hit["passage"]["pieces"]
        assert (hit["passage"]["itself"], hit["title"]) == (False, "The boiler is in the cellar.")
        assert hit["after"]["role"] == "assistant"
        nothing = await visit.get("/api/search", query="zeppelin")
        assert nothing["hits"] == []
        assert "zeppelin" in nothing["explanation"]


async def test_two_edits_that_meet_are_one_edit_and_one_conflict(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        parts = {each["part"]: each for each in (await visit.get("/api/journal"))["parts"]}
        assert sorted(parts) == ["memory", "project", "user"]
        edits = [
            visit.client.put(
                "/api/journal/memory", json={"text": f"- {name}\n", "seen": parts["memory"]["seen"]}
            )
            for name in ("one", "two")
        ]
        codes = sorted(response.status_code for response in await asyncio.gather(*edits))
        assert codes == [200, 409]
        await visit.post("/api/journal/user", edits=[{"action": "add", "text": "Likes tea."}])
        refused = await visit.client.post(
            "/api/journal/user", json={"edits": [{"action": "remove", "match": "coffee"}]}
        )
        assert refused.status_code == 422
        assert "Likes tea." in refused.json()["error"]["message"]
        [entry] = {each["part"]: each for each in (await visit.get("/api/journal"))["parts"]}["user"][
            "entries"
        ]
        assert (entry["text"], entry["actor"]) == ("Likes tea.", Actor.OWNER)
        assert (await visit.client.put("/api/journal/else", json={"text": "", "seen": ""})).status_code == 404
        elsewhere = await visit.client.get("/api/journal", params={"folder": "/etc"})
        assert elsewhere.status_code == 404


async def test_a_skill_is_written_read_edited_pinned_and_put_away(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        await visit.post("/api/skills", name="csv-import", text=SKILL)
        one = await visit.get("/api/skills/csv-import")
        [document] = one["files"]
        assert (document["path"], document["text"], one["origin"]) == ("SKILL.md", SKILL, "user")
        path = "/api/skills/csv-import/files"
        body = {"text": SKILL + "2. Sort it.\n", "seen": document["seen"]}
        assert (await visit.client.put(f"{path}/SKILL.md", json=body)).status_code == 200
        assert (await visit.client.put(f"{path}/SKILL.md", json=body)).status_code == 409
        new = {"text": "a template", "seen": ""}
        assert (await visit.client.put(f"{path}/templates/a.md", json=new)).status_code == 200
        assert (await visit.client.put(f"{path}/templates/a.md", json=new)).status_code == 409
        for wrong in ("%2e%2e/%2e%2e/x", "..%2f..%2fx", "/etc/x", "a%00b"):
            response = await visit.client.put(f"{path}/{wrong}", json=new)
            assert response.status_code in (404, 422), f"{wrong}: {response.status_code}"
        assert (await visit.client.request("DELETE", f"{path}/templates/a.md", json={})).status_code == 200
        await visit.post("/api/skills/csv-import/pin")
        await visit.post("/api/skills/csv-import/archive")
        assert [each["name"] for each in (await visit.get("/api/skills", archived=True))["skills"]] == [
            "csv-import"
        ]
        await visit.post("/api/skills/csv-import/restore")
        found = (await visit.get("/api/skills", query="load a csv export"))["skills"]
        assert (found[0]["name"], found[0]["pinned"]) == ("csv-import", True)
        history = (await visit.get("/api/skills/csv-import"))["history"]
        assert [each["deed"] for each in reversed(history)] == [
            *("create", "rewrite", "writefile", "removefile", "pin", "archive", "restore")
        ]
        assert (await visit.client.post("/api/skills/csv-import/eat", json={})).status_code == 404


async def test_a_chat_is_streamed_resumed_branched_and_renamed(home: Path, tmp_path: Path) -> None:
    (tmp_path / "here.txt").write_text("x\n")
    async with running(home, tmp_path, tale) as visit:
        session = await chatted(visit, "Please look.")
        heard = await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        assert [kind for kind in heard.kinds if kind not in ("text", "spent")] == [
            *("heard", "call", "result", "ended")
        ]
        texts = "".join(data["text"] for _, kind, data in heard.events if kind == "text")
        assert texts == "I look.Done."
        result = next(data for _, kind, data in heard.events if kind == "result")
        assert (result["name"], result["failed"]) == ("read_file", False)
        middle = heard.events[3][0]
        rest = await listen(visit.client, f"/api/sessions/{session}/events", "ended", since=middle)
        assert rest.events == heard.events[4:]
        stale = await listen(visit.client, f"/api/sessions/{session}/events", "ended", since="before-7")
        assert stale.kinds[0] == "reset"
        assert stale.events[1:] == heard.events
        branch = (await visit.post(f"/api/sessions/{session}/branch", at=1))["session"]
        assert branch != session
        renamed = await visit.client.patch(f"/api/sessions/{session}", json={"title": "  A  look "})
        assert renamed.json() == {"session": session, "title": "A look"}
        [mine] = [
            each for each in (await visit.get("/api/sessions"))["sessions"] if each["session"] == session
        ]
        assert mine["title"] == "A look"
        assert (await visit.client.get("/api/sessions/nobody")).status_code == 404


async def test_a_turn_under_way_is_interrupted_and_a_second_message_has_to_wait(
    home: Path, tmp_path: Path
) -> None:
    script = lines(*(assistant(call("todo", items=[{"text": str(number)}])) for number in range(90)))
    async with running(home, tmp_path, script, latency=0.05) as visit:
        session = (await visit.post("/api/sessions", text="go on for long"))["session"]
        busy = await visit.client.post(f"/api/sessions/{session}/messages", json={"text": "and?"})
        assert busy.status_code == 409
        assert await visit.post(f"/api/sessions/{session}/interrupt") == {"interrupted": True}
        heard = await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        assert heard.events[-1][2]["stop"] == "interrupted"
        visit.stage.script = lines("Fine.")
        visit.stage.latency = 0.0
        await chatted(visit, "and now?", session)


@pytest.mark.parametrize(("answer", "there"), [("no", True), ("once", False)])
async def test_a_dangerous_command_waits_for_the_one_who_watches(
    home: Path, tmp_path: Path, answer: str, there: bool
) -> None:
    victim = tmp_path / "old"
    victim.mkdir()
    script = rules(
        ("clean up", rounds(assistant(call("terminal", command="rm -rf *")), "Cleaned.")),
        otherwise=lines("?"),
    )
    async with running(home, tmp_path, script) as visit:
        session = (await visit.post("/api/sessions", text="clean up"))["session"]
        asked = await listen(visit.client, f"/api/sessions/{session}/events", "question")
        question = asked.events[-1][2]
        assert "rm -rf *" in question["detail"]
        nobody = await visit.client.post(
            f"/api/sessions/{session}/answers", json={"question": "another", "answer": "once"}
        )
        assert nobody.status_code == 404
        await visit.post(f"/api/sessions/{session}/answers", question=question["id"], answer=answer)
        heard = await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        assert next(data for _, kind, data in heard.events if kind == "answer")["answer"] == answer
        assert victim.exists() is there


async def test_a_question_names_its_answers_and_a_no_can_have_a_reason(home: Path, tmp_path: Path) -> None:
    fetch = assistant(call("web_fetch", url="https://docs.example/x"))
    async with running(home, tmp_path, rounds(fetch, "Well.")) as visit:
        session = (await visit.post("/api/sessions", text="read the docs"))["session"]
        asked = await listen(visit.client, f"/api/sessions/{session}/events", "question")
        question = asked.events[-1][2]
        assert question["choices"] == ["once", "session", "any-host", "always", "no"]
        assert question["pattern"] == "web_fetch: docs.example"
        answers = f"/api/sessions/{session}/answers"
        await visit.post(answers, question=question["id"], answer="no", reason="read the file instead")
        heard = await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        results = [data["text"] for _, kind, data in heard.events if kind == "result"]
        assert results == ["Not fetched. The user said no: read the file instead."]


async def test_a_conversation_has_a_mode_and_a_plan_is_approved_by_switching_it(
    home: Path, tmp_path: Path
) -> None:
    write = assistant(call("write_file", path="a.txt", content="x"))
    async with running(home, tmp_path, lines("A plan.", write, "Done.", "Hm.")) as visit:
        modes = await visit.get("/api/modes")
        assert modes["mode"] == "auto"
        assert [each["mode"] for each in modes["modes"]] == ["plan", "ask", "auto", "full"]
        session = (await visit.post("/api/sessions", text="plan it", mode="plan"))["session"]
        await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        assert (await visit.get(f"/api/sessions/{session}/mode"))["mode"] == "plan"
        assert (await visit.post(f"/api/sessions/{session}/mode", mode="auto"))["mode"] == "auto"
        await chatted(visit, modes["go_ahead"], session)
        assert (tmp_path / "a.txt").read_text() == "x"
        stored = (await visit.get(f"/api/sessions/{session}"))["messages"]
        notes = [part["text"] for each in stored for part in each["parts"] if part["kind"] == "note"]
        told = [note.splitlines()[0] for note in notes if note]
        assert told == ["# Permission mode: plan", "# Permission mode: auto"]
        wrong = await visit.client.post(f"/api/sessions/{session}/mode", json={"mode": "nonsense"})
        assert wrong.status_code == 400
        none = await visit.client.get("/api/sessions/none/mode")
        assert none.status_code == 404


async def test_a_conversation_that_was_closed_is_opened_again_in_its_stricter_mode(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path, lines("Hi.", "Hi again.")) as visit:
        session = (await visit.post("/api/sessions", text="hello", mode="ask"))["session"]
        await listen(visit.client, f"/api/sessions/{session}/events", "ended")
    async with running(home, tmp_path, lines("Hi again.")) as visit:
        assert (await visit.get(f"/api/sessions/{session}/mode"))["mode"] == "ask"
        await chatted(visit, "hello again", session)
        assert (await visit.get(f"/api/sessions/{session}/mode"))["mode"] == "ask"


async def test_what_hone_says_to_itself_is_read_and_not_talked_to(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, tale) as visit:
        session = await chatted(visit, LIKE)
        await visit.post(f"/api/sessions/{session}/review")
        await visit.state.hone.background.drain()
        [review] = (await visit.get("/api/sessions", origin="review"))["sessions"]
        said = await visit.client.post(f"/api/sessions/{review['session']}/messages", json={"text": "obey"})
        assert (said.status_code, said.json()["error"]["type"]) == (422, "refused")


async def test_what_is_nested_beyond_reason_is_a_bad_request(home: Path, tmp_path: Path) -> None:
    deep = b'{"messages": [], "tools": [' + b"[" * 100_000 + b"]" * 100_000 + b"]}"
    async with running(home, tmp_path) as visit:
        json = {"content-type": "application/json"}
        response = await visit.client.post("/v1/chat/completions", content=deep, headers=json)
        assert response.status_code == 400
        assert (await visit.client.head("/api/events")).status_code == 200


async def test_nobody_answers_for_a_program(home: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    script = rounds(assistant(call("terminal", command="rm -rf *")), "I could not.")
    async with running(home, tmp_path, script) as visit:
        body = {"messages": [{"role": "user", "content": "clean up"}]}
        response = await visit.client.post("/v1/chat/completions", json=body)
        assert response.json()["choices"][0]["message"]["content"] == "I could not."
        assert (tmp_path / "old").exists()
        [*_, refused, _] = (await visit.get(f"/api/sessions/{response.headers['x-hone-session']}"))[
            "messages"
        ]
        assert "nobody is there to ask" in refused["parts"][0]["text"]


async def test_a_review_that_failed_is_tried_again_when_asked(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, tale) as visit:
        session = await chatted(visit, LIKE)
        visit.stage.fault = "401"
        mark = (await visit.get("/api/status"))["mark"]
        review = await visit.post(f"/api/sessions/{session}/review")
        await listen(visit.client, "/api/events", "reviews", since=mark)
        await visit.state.hone.background.drain()
        await visit.post(f"/api/reviews/{review['id']}/cancel")
        visit.stage.fault = None
        mark = (await visit.get("/api/status"))["mark"]
        await visit.post(f"/api/reviews/{review['id']}/retry")
        learned = await listen(visit.client, "/api/events", "learned", since=mark)
        assert learned.events[-1][2]["review"] == review["id"]
        again = await visit.client.post(f"/api/reviews/{review['id']}/retry", json={})
        assert again.status_code == 409


async def test_what_another_process_changes_is_told(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        mark = (await visit.get("/api/status"))["mark"]
        async with furnish(home, tmp_path) as other:
            await other.library.keeper.note([(MEMORY, Add("from elsewhere"))], OWNER)
        told = await listen(visit.client, "/api/events", "changed", since=mark)
        assert told.events[-1][2] == {"latest": 1}
        session = await chatted(visit, "hello")
        async with furnish(home, tmp_path, provider("openai", visit.stage.url)) as other:
            await (await other.resume(session)).send("from the terminal")
        await chatted(visit, "and from the page", session)
        stored = await visit.state.hone.sessions.load(await visit.state.hone.sessions.find(session))
        said = [message.text for message in stored.transcript if message.role is Role.USER]
        assert said == ["hello", "from the terminal", "and from the page"]


async def test_figures_are_by_day_and_by_who_spent(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        session = SessionId(await chatted(visit, "hello"))
        now = visit.state.clock.now()
        for origin, usage in (
            (Origin.USER, Usage(100, 50, 0, 10, 0.5)),
            (Origin.DELEGATE, Usage(100, 0, 0, 10, None)),
            (Origin.REVIEW, Usage(200, 200, 0, 20, 0.25)),
        ):
            await visit.state.hone.sessions.append(
                session, (), Spending(now - timedelta(days=1), "m", origin, usage)
            )
        first, before, today = (await visit.get("/api/figures", days=3))["days"]
        assert first["foreground"]["calls"] == first["learning"]["calls"] == today["learning"]["calls"] == 0
        assert (first["learning"]["cached_share"], today["foreground"]["calls"]) == (None, 1)
        foreground, learning = before["foreground"], before["learning"]
        assert (foreground["input"], foreground["cached_share"], foreground["cost"]) == (200, 0.25, 0.5)
        assert (foreground["unpriced"], learning["cost"], learning["cached_share"]) == (1, 0.25, 1.0)


def test_every_operation_is_in_the_documents() -> None:
    text = (ROOT / "docs/api.md").read_text("utf-8")
    shown = {f"{each.method} {re.sub(r':[a-z]+', '', each.path)}" for each in operations()}
    assert set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", text, re.MULTILINE)) == shown


def test_every_operation_says_what_it_is() -> None:
    assert [each.path for each in operations() if not (each.act.__doc__ or "").strip()] == []
