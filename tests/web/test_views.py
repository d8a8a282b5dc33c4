"""I3: what the page shows beside conversations: templates, experiments, curator, backends, permissions."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hone.core.ids import SessionId
from hone.core.ledger import ChangeQuery
from hone.core.messages import Message, Role, assistant
from hone.core.skill import SkillOrigin
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Arm, Check, Lesson, LessonKind, Run, Study, Task
from hone.features.templates.part import TemplatesPart
from hone.features.templates.values import Example, Template, WorkKind
from hone.files.documents import FileDocuments
from hone.knowledge.skills.folder import Create
from tests.curating import LEARNED, document, merge
from tests.web.rig import Running, running
from tests.web.test_api import chatted

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
SECRET = "ghp_" + "a1B2" * 9
EXAMPLE = Example("read_file", '{"path": "a"}', "words", 5, Trust.LOCAL, Trust.FOREIGN)
TEMPLATE = Template(
    "notes", WorkKind.FILE, SessionId("s1"), AT, f"How notes go {SECRET}", ("git",), (EXAMPLE,)
)
PLAN = merge("trip-planning", ["night-trains"], "# Steps\nPack, then book early.")


async def refused(visit: Running, status: int, method: str, path: str, body: Any = None) -> str:
    response = await visit.client.request(method, path, json=body)
    assert response.status_code == status, response.text
    return str(response.json()["error"]["message"])


async def test_templates_are_listed_read_made_and_deleted(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        assert await visit.get("/api/templates") == {"templates": [], "broken": []}
        await visit.state.hone.part(TemplatesPart).store.add(TEMPLATE)
        (home / "templates/broken.json").write_text("{}")
        listed = await visit.get("/api/templates", type="file", tag="git")
        [row] = listed["templates"]
        assert (row["name"], row["type"], row["examples"], row["uses"]) == ("notes", "file", 1, 0)
        assert "broken" in listed["broken"][0]
        assert (await visit.get("/api/templates", tag="other"))["templates"] == []
        whole = await visit.get("/api/templates/notes")
        assert (whole["shown"][0]["tool"], whole["shown"][0]["result_trust"]) == ("read_file", "foreign")
        assert SECRET not in str((listed, whole))
        session = await chatted(visit, "hello")
        await refused(visit, 422, "POST", "/api/templates", {"session": session})  # nothing to show
        await refused(visit, 404, "POST", "/api/templates", {"session": "nobody"})
        for path in ("/api/templates/other", "/api/templates/..%2f..%2fhone.toml"):
            assert (await visit.client.get(path)).status_code in (404, 422)
        gone = {"content-type": "application/json"}
        assert (await visit.client.delete("/api/templates/notes", headers=gone)).status_code == 200
        await refused(visit, 404, "GET", "/api/templates/notes")


def study_of(home: Path) -> Studies:
    studies = Studies(FileDocuments(home), home)
    studies.add(Task("tidy", SessionId("s1"), AT, "/work", f"Tidy up {SECRET}", Check(text="done")))
    study = studies.study(Study("tidy", Lesson(LessonKind.SKILL, "sweep", "ab12"), "scripted/echo", AT))
    run = Run(1, Arm.WITH, True, 3, 0, 0, 1, 0.5, 2, 900, 1.25)
    for pair in range(1, 21):
        study = studies.append(study, replace(run, pair=pair))
        study = studies.append(study, replace(run, pair=pair, arm=Arm.WITHOUT, success=pair % 4 == 0))
    return studies


async def test_experiments_are_told_with_their_intervals(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        assert await visit.get("/api/experiments") == {"experiments": [], "broken": []}
        study_of(home)
        (home / "experiments/other").mkdir()
        (home / "experiments/other/task.json").write_text("{}")
        listed = await visit.get("/api/experiments")
        [row], [fault] = listed["experiments"], listed["broken"]
        [study] = row["studies"]
        assert (study["verdict"], study["complete"], study["done"], study["runs"]) == ("helps", True, 20, 40)
        [success] = study["differences"]
        low, high = success["interval"]
        assert 0 < low < success["difference"] == 0.75 < high <= 1
        assert "helps" in study["sentence"]
        assert "other" in fault
        whole = await visit.get("/api/experiments/tidy")
        assert (len(whole["studies"][0]["runs"]), len(whole["studies"][0]["differences"])) == (40, 7)
        assert SECRET not in str((listed, whole))
        await refused(visit, 404, "GET", "/api/experiments/nothing")
        await refused(visit, 422, "GET", "/api/experiments/No%20Name")


def planning(messages: Sequence[Message]) -> Message:
    """Plans where the curator asks, and answers everybody else."""
    asked = "".join(each.text for each in messages if each.role is Role.USER)
    said = json.dumps(PLAN) if "trip-planning" in asked else "Well."
    return assistant(said)


async def test_a_round_of_the_curator_is_shown_before_it_is_done_and_can_be_paused(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path, planning) as visit:
        hone = visit.state.hone
        await visit.post(
            "/api/curator/pause", paused=True
        )  # or the first round, which is due, begins by itself
        for name in ("trip-planning", "night-trains"):
            made = Create(document(name, f"# Steps\nDo {name}."), SkillOrigin.AGENT)
            await hone.keeper.edit_skill(name, made, LEARNED)
        before = await hone.ledger.latest()
        shown = await visit.post("/api/curator/preview")
        deeds = {(each["skill"], each["waits"]) for each in shown["moves"]}
        assert deeds == {("trip-planning", True), ("night-trains", True)}
        assert any("book early" in row["text"] for each in shown["moves"] for row in each["rows"])
        assert (await hone.ledger.latest(), shown["error"], shown["refused"]) == (before, "", [])
        state = await visit.get("/api/curator")
        assert (state["rounds"], state["paused"], state["waiting"]) == ([], True, [])
        assert {each["skill"] for each in state["ages"]} == {"trip-planning", "night-trains"}
        done = await visit.post("/api/curator/rounds")
        assert len(done["made"]) == 2
        state = await visit.get("/api/curator")
        assert ([each["round"] for each in state["rounds"]], len(state["waiting"])) == ([1], 2)
        whole = await visit.get("/api/curator/rounds/1")
        assert [each["id"] for each in whole["made"]] == done["changes"]
        assert "Round 1" in whole["report"]
        entries = await hone.ledger.entries(ChangeQuery())
        again = await visit.post("/api/curator/preview")
        assert (again["moves"], bool(again["skipped"])) == ([], True)  # an answer is awaited first
        assert await hone.ledger.entries(ChangeQuery()) == entries
        await visit.post("/api/curator/pause", paused=False)
        assert not (await visit.get("/api/curator"))["paused"]
        await refused(visit, 404, "GET", "/api/curator/rounds/9")


async def test_memory_backends_are_listed_and_measured(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        listed = await visit.get("/api/backends")
        assert (listed["used"], listed["because"], listed["waiting"]) == ("null", "nothing is set", 0)
        known = {each["name"]: each for each in listed["backends"]}
        assert known["sqlite"]["available"]
        assert known["null"]["used"]
        found = await visit.post("/api/backends/evaluate", names=["sqlite"])
        assert (found["backends"][0]["name"], found["recommended"]) == ("sqlite", "sqlite")
        assert found["backends"][0]["survives_kill"] is True
        await refused(visit, 422, "POST", "/api/backends/evaluate", {"names": ["nothing"]})
        await refused(visit, 400, "POST", "/api/backends/evaluate", {"names": []})


async def test_permission_rules_are_told_added_and_removed(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path) as visit:
        empty = await visit.get("/api/permissions")
        assert (empty["folder"], empty["rules"]) == (str(tmp_path), [])
        assert {each["mode"] for each in empty["modes"]} == {"plan", "ask", "auto", "full"}
        rule = {"rule": "terminal: make test"}
        await visit.post("/api/permissions", **rule)
        await visit.post("/api/permissions", rule="write_file: docs/**", kind="deny", everywhere=True)
        rules = (await visit.get("/api/permissions"))["rules"]
        told = [(each["kind"], each["rule"], each["source"], each["own"]) for each in rules]
        assert told == [
            ("deny", "write_file: docs/**", "everywhere", True),
            ("allow", "terminal: make test", "this folder", True),
        ]
        other = (await visit.get("/api/permissions", folder=str(home)))["rules"]
        assert [each["source"] for each in other] == ["everywhere"]
        await refused(visit, 404, "POST", "/api/permissions/remove", rule | {"everywhere": True})
        await visit.post("/api/permissions/remove", **rule)
        await refused(visit, 404, "POST", "/api/permissions/remove", rule)
        await refused(visit, 422, "POST", "/api/permissions", {"rule": "nonsense"})
        await refused(visit, 422, "POST", "/api/permissions", rule | {"folder": "not/whole"})


async def test_pairs_that_contradict_or_repeat_each_other_stand_side_by_side(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path) as visit:
        assert await visit.get("/api/pairs") == {"pairs": [], "total": 0}
        entries = ("Indent with tabs.", "Indent with spaces.", "The office is in Ghent.")
        edits = [
            {"action": "add", "text": each} for each in (*entries, "The office of the team is in Ghent.")
        ]
        await visit.post("/api/journal/user", edits=edits)
        found = await visit.get("/api/pairs")
        told = [(each["relation"], each["one"]["text"], each["other"]["text"]) for each in found["pairs"]]
        assert told == [
            ("contradicts", entries[0], entries[1]),
            ("resembles", entries[2], "The office of the team is in Ghent."),
        ]
        assert found["pairs"][0]["one"]["change"] == 1
        for name in ("csv-import", "csv-imports", "garden-plans"):
            text = document(name, "# Steps\nGo.").replace("About csv imports.", "About csv import.")
            await visit.post("/api/skills", name=name, text=text)
        near = await visit.get("/api/skills/csv-import/alike")
        assert [each["name"] for each in near["skills"]] == ["csv-imports"]
        await refused(visit, 404, "GET", "/api/skills/nothing/alike")
