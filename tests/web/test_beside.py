"""I3: what stands beside a conversation: what it knows, its model, and the way back to an earlier message."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hone.core.knowledge import Snapshot
from hone.core.messages import Message, Role, assistant
from hone.models.scripted import call
from hone.prompt.compose import find_noted, item, journal, surroundings
from hone.settings import Settings
from hone.settings.sections import ModelSettings
from tests.given import NOON
from tests.web.rig import Running, listen, running
from tests.web.test_api import LIKE, SKILL, chatted, tale

ENTRY = st.text(st.sampled_from("ab #-\n\u202e"), min_size=1).filter(str.strip)


@given(st.lists(ENTRY), st.lists(ENTRY), st.lists(ENTRY))
def test_a_prompt_says_which_entries_it_holds(memory: list[str], user: list[str], own: list[str]) -> None:
    known = {"memory": memory, "user": user, "project": own}
    system = "\n\n".join(
        (
            "You are Hone.\n\n# Journal\n\n## About the user\n\n- a lie",
            journal(Snapshot(tuple(memory), tuple(user), tuple(own))),
        )
    )
    found = find_noted(f"{system}\n\n{surroundings(Path('/work'), NOON.date(), 'Linux')}")
    wanted = {name: ["\n".join(item(each)) for each in held] for name, held in known.items() if held}
    if wanted:
        assert {name: list(held) for name, held in found.items()} == wanted


def parrot(messages: Sequence[Message]) -> Message:
    said = [each for each in messages if each.role is Role.USER]
    if said[-1].text == "Read the skill." and messages[-1] is said[-1]:
        return assistant(call("skill_view", name="csv-import"))
    return assistant(f"{len(said)}: {said[-1].text}")


async def known(visit: Running, session: str) -> dict[str, str]:
    found = await visit.get(f"/api/sessions/{session}/known")
    return {each["text"]: each["known"] for each in found["entries"]}


async def note(visit: Running, action: str, text: str, **more: Any) -> None:
    await visit.post("/api/journal/user", edits=[{"action": action, "text": text, **more}])


async def test_a_conversation_says_what_it_knows_from_its_prompt_and_since(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path, parrot) as visit:
        await note(visit, "add", LIKE)
        await visit.post("/api/skills", name="csv-import", text=SKILL)
        start = await visit.get("/api/known")
        assert [(each["text"], each["known"]) for each in start["entries"]] == [(LIKE, "prompt")]
        session = await chatted(visit, "Read the skill.")
        await note(visit, "add", "I work in Lisbon.")
        assert await known(visit, session) == {LIKE: "prompt", "I work in Lisbon.": "next"}
        await chatted(visit, "Go on.", session)
        assert await known(visit, session) == {LIKE: "prompt", "I work in Lisbon.": "told"}
        await note(visit, "remove", "", match=LIKE)
        found = await visit.get(f"/api/sessions/{session}/known")
        assert found["gone"] == [{"part": "user", "text": LIKE}]
        assert (found["folder"], found["model"]) == (str(tmp_path), "stage/scripted")
        assert 0 < found["tokens"] < found["window"]
        shelf = {each["name"] for each in (await visit.get("/api/skills"))["skills"]}
        used = {each["name"]: each["used"] for each in found["skills"]}
        assert used.keys() == shelf
        assert [name for name, read in used.items() if read] == ["csv-import"]


async def test_a_message_is_sent_again_or_changed_and_the_old_conversation_is_kept(
    home: Path, tmp_path: Path
) -> None:
    async with running(home, tmp_path, parrot) as visit:
        session = await chatted(visit, "One.")
        await chatted(visit, "Two.", session)
        for number, text, wanted in ((1, "", "1: One."), (3, "Three.", "2: Three.")):
            made = await visit.post(f"/api/sessions/{session}/again", message=number, text=text)
            await listen(visit.client, f"/api/sessions/{made['session']}/events", "ended")
            said = (await visit.get(f"/api/sessions/{made['session']}"))["messages"]
            assert said[-1]["parts"][-1]["text"] == wanted
            assert said[-2]["trust"] == "owner"
        for number in (2, 5, 99):
            refused = await visit.client.post(f"/api/sessions/{session}/again", json={"message": number})
            assert refused.status_code == 422, number
        kept = (await visit.get(f"/api/sessions/{session}"))["messages"]
        assert [each["parts"][-1]["text"] for each in kept] == ["One.", "1: One.", "Two.", "2: Two."]


async def test_the_model_is_changed_and_a_file_goes_with_a_message_as_nobodys_words(
    home: Path, tmp_path: Path
) -> None:
    settings = Settings(models={"stage/other": ModelSettings(window=50_000)})
    async with running(home, tmp_path, parrot, settings=settings) as visit:
        session = await chatted(visit, "One.")
        made = await visit.post(f"/api/sessions/{session}/model", model="stage/other")
        assert made["model"] == "stage/other"
        found = await visit.get(f"/api/sessions/{session}/known")
        assert (found["model"], found["window"]) == ("stage/other", 50_000)
        files = [{"name": "notes.txt", "text": "The port is 99."}]
        await visit.post(f"/api/sessions/{session}/messages", text="Read this.", files=files)
        await listen(visit.client, f"/api/sessions/{session}/events", "ended")
        said = (await visit.get(f"/api/sessions/{session}"))["messages"]
        attached = [part for part in said[2]["parts"] if part["kind"] == "attachment"]
        assert [(each["name"], each["label"]) for each in attached] == [("file notes.txt", "foreign")]
        assert said[2]["trust"] == "owner"
        assert visit.stage.requests[-1].body.count(b"The port is 99.") == 1


async def test_what_waits_stands_beside_what_it_resembles_and_a_doubt_is_confirmed(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "here.txt").write_text("the port is 99\n")
    async with running(home, tmp_path, tale) as visit:
        session = await chatted(visit, f"{LIKE} Please look.")
        await visit.post(f"/api/sessions/{session}/review", topics=["memory"])
        await visit.state.hone.background.drain()
        await visit.post("/api/journal/memory", edits=[{"action": "add", "text": "The port is not 99."}])
        [waiting] = (await visit.get("/api/pending"))["changes"]
        pair = {"text": "The port is not 99.", "new": "The port is 99.", "relation": "contradicts"}
        assert waiting["near"] == [pair]
        assert await known(visit, session) == {LIKE: "own", "The port is not 99.": "next"}
        settled = await visit.client.post("/api/changes/1/confirm", json={})
        assert settled.status_code == 422  # the owner said it: nothing is in doubt
