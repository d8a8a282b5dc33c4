"""I4: an editor drives Hone over ACP. Turns end in order, questions are answered, words keep their labels."""

import asyncio
import json
import os
import signal
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone import Hone, Scripted, assistant, call, lines
from hone.cli.detach import After
from hone.cli.options import Options
from hone.core.messages import Image, Message, Role, Text, Thinking, ToolCall
from hone.core.model import Piece
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.features.acp.commands import serve
from hone.features.mcp.client.catalog import approve, note_seen
from hone.features.mcp.part import McpPart
from hone.models.scripted import echo, rounds
from hone.rpc.messages import INVALID_PARAMS, INVALID_REQUEST, METHOD_NOT_FOUND, RpcError
from hone.rpc.peer import Peer
from hone.settings import Settings
from hone.settings.sections import AcpSettings
from tests.acp.rig import FakeEditor, choose, editing
from tests.mcp_client.stage import Double, tool
from tests.provider import Provider, Say
from tests.rig import faults
from tests.rpc.pairs import running, wires

WRITE = call("write_file", path="a.txt", content="new\n")
ASK = "session/request_permission"
PICTURE = Path(__file__).parent.parent / "images" / "palette.png"


async def stored(editor: FakeEditor, session: str) -> list[Message]:
    """Return the messages of a session, which must be a history that any provider takes."""
    loaded = await editor.hone.sessions.load(await editor.hone.sessions.find(session))
    messages = list(loaded.transcript)
    assert faults(messages) == []
    return messages


async def test_a_task_shows_thoughts_calls_diffs_a_plan_and_the_answer_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    todo = call("todo", items=[{"text": "write", "state": "doing"}, {"text": "test"}])
    script = lines(assistant(Thinking("hm"), todo), assistant("Now.", WRITE), "All done.")
    async with editing(script) as editor:
        begun = await editor.begin()
        assert begun["protocolVersion"] == 1
        session = await editor.open(tmp_path)
        ended = await editor.prompt(session, "change a.txt")
        assert ended["stopReason"] == "end_turn"
        assert editor.text() == "Now.All done."
        assert "hm" in editor.text("agent_thought_chunk")
        [plan] = editor.of("plan")
        assert [each["status"] for each in plan["entries"]] == ["in_progress", "pending"]
        [started] = [each for each in editor.of("tool_call") if each["kind"] == "edit"]
        assert started["title"] == "write_file a.txt"
        assert started["locations"] == [{"path": str(tmp_path / "a.txt")}]
        [done] = [each for each in editor.of("tool_call_update") if each["toolCallId"] == WRITE.id]
        diff = {"type": "diff", "path": str(tmp_path / "a.txt"), "oldText": "old\n", "newText": "new\n"}
        assert (done["status"], done["content"][0]) == ("completed", diff)
        kinds = [update["sessionUpdate"] for _, update in editor.updates]
        assert kinds.index("tool_call") < kinds.index("plan") < kinds.index("agent_message_chunk")
        assert editor.of("usage_update")[0]["used"] > 0
        assert editor.of("session_info_update")[0]["title"] == "change a.txt"


async def test_a_question_shows_the_rule_and_the_diff_and_a_yes_for_the_session_asks_once(
    tmp_path: Path,
) -> None:
    again = call("write_file", path="a.txt", content="newer\n")
    async with editing(lines(assistant(WRITE), assistant(again), "Done."), mode="ask") as editor:
        editor.replies[ASK] = choose("session")
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "change a.txt")
        [(_, asked)] = editor.asked
        options = {each["optionId"]: each for each in asked["options"]}
        rule = f"write_file: {tmp_path / 'a.txt'}"
        assert list(options) == ["once", "session", "always", "no"]
        assert [each["kind"] for each in options.values()] == [
            *("allow_once", "allow_always", "allow_always", "reject_once")
        ]
        assert rule in options["always"]["name"]
        assert asked["toolCall"]["toolCallId"] == WRITE.id
        shown = asked["toolCall"]["content"]
        assert rule in shown[0]["content"]["text"]
        assert shown[1] == {"type": "diff", "path": str(tmp_path / "a.txt"), "newText": "new\n"}
        assert (tmp_path / "a.txt").read_text() == "newer\n"


@pytest.mark.parametrize(
    "reply",
    [
        {"outcome": {"outcome": "selected", "optionId": "no"}},
        {"outcome": {"outcome": "cancelled"}},
        {"outcome": {"outcome": "selected", "optionId": "sudo"}},
        {"outcome": "yes"},
        None,
    ],
)
async def test_every_answer_but_an_offered_yes_is_a_no(tmp_path: Path, reply: object) -> None:
    async def answer(_: dict[str, Any]) -> object:
        return reply

    async with editing(lines(assistant(WRITE), "Not done."), mode="ask") as editor:
        editor.replies[ASK] = answer
        await editor.begin()
        session = await editor.open(tmp_path)
        ended = await editor.prompt(session, "change a.txt")
        assert ended["stopReason"] == "end_turn"
        assert editor.statuses(WRITE.id) == ["in_progress", "failed"]
        assert not (tmp_path / "a.txt").exists()


async def test_an_editor_that_knows_no_questions_is_nobody_to_ask(tmp_path: Path) -> None:
    async with editing(lines(assistant(WRITE), "Not done."), mode="ask") as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "change a.txt")
        assert "nobody is there to ask" in str(editor.of("tool_call_update"))
        assert not (tmp_path / "a.txt").exists()


class Waiting:
    """A model that says how far it is, and goes on when it is told to."""

    def __init__(self, script: Scripted) -> None:
        self._script = script
        self.asked, self.open = asyncio.Event(), asyncio.Event()

    async def stream(self, prefix: Prefix, transcript: Transcript) -> AsyncGenerator[Piece, None]:
        self.asked.set()
        await self.open.wait()
        async for piece in self._script.stream(prefix, transcript):
            yield piece


async def test_a_cancel_while_the_model_is_silent_ends_the_turn_and_the_next_one_works(
    tmp_path: Path,
) -> None:
    model = Waiting(Scripted(echo))
    async with editing(model) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        prompting = asyncio.create_task(editor.prompt(session, "first"))
        await model.asked.wait()
        await editor.cancel(session)
        assert (await prompting)["stopReason"] == "cancelled"
        model.open.set()
        assert (await editor.prompt(session, "second"))["stopReason"] == "end_turn"
        said = [each.text for each in await stored(editor, session) if each.role is Role.USER]
        assert said == ["first", "second"]


async def test_a_cancel_during_a_tool_ends_it_and_its_call_has_a_result(tmp_path: Path) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hold() -> str:
        """Hold on."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    holding = call("hold")
    async with editing(lines(assistant(holding), "Never."), tools=[hold]) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        prompting = asyncio.create_task(editor.prompt(session, "wait"))
        await begun.wait()
        await editor.cancel(session)
        assert (await prompting)["stopReason"] == "cancelled"
        assert ended.is_set()
        assert editor.statuses(holding.id) == ["in_progress", "failed"]
        assert (await stored(editor, session))[0].text == "wait"


async def test_a_cancel_during_a_question_writes_nothing_whatever_is_answered_later(tmp_path: Path) -> None:
    held = asyncio.Event()

    async def late(_: dict[str, Any]) -> object:
        await held.wait()
        return {"outcome": {"outcome": "selected", "optionId": "always"}}

    async with editing(lines(assistant(WRITE), "Never."), mode="ask") as editor:
        editor.replies[ASK] = late
        await editor.begin()
        session = await editor.open(tmp_path)
        prompting = asyncio.create_task(editor.prompt(session, "change a.txt"))
        await editor.until(lambda: editor.asked)
        await editor.cancel(session)
        assert (await prompting)["stopReason"] == "cancelled"
        held.set()
        await stored(editor, session)
        assert not (tmp_path / "a.txt").exists()
        assert not (editor.hone.home / "permissions.json").exists()


async def test_a_cancel_right_behind_a_prompt_reaches_it_and_one_before_it_does_not(tmp_path: Path) -> None:
    async with editing(echo) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.cancel(session)
        prompting = asyncio.create_task(editor.prompt(session, "first"))
        waiting = asyncio.create_task(editor.prompt(session, "second"))
        await asyncio.sleep(0)
        await editor.cancel(session)
        assert (await prompting)["stopReason"] == (await waiting)["stopReason"] == "cancelled"
        assert (await editor.prompt(session, "third"))["stopReason"] == "end_turn"
        await stored(editor, session)


async def test_a_request_that_is_cancelled_by_its_id_is_answered_with_an_error(tmp_path: Path) -> None:
    model = Waiting(Scripted(echo))
    async with editing(model) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        prompting = asyncio.create_task(editor.prompt(session, "first"))
        await model.asked.wait()
        await editor.peer.notify("$/cancel_request", {"requestId": 3})
        with pytest.raises(RpcError, match="canceled"):
            await prompting


@pytest.mark.parametrize("state", ["model", "question"])
async def test_an_editor_that_disappears_in_a_turn_leaves_a_valid_history_with_the_message(
    tmp_path: Path, state: str
) -> None:
    model = Waiting(Scripted(lines(assistant(WRITE), "Never.")))
    if state == "question":
        model.open.set()
    held = asyncio.Event()

    async def never(_: dict[str, Any]) -> object:
        await held.wait()
        return {}

    async with editing(model, mode="ask") as editor:
        editor.replies[ASK] = never
        await editor.begin()
        session = await editor.open(tmp_path)
        prompting = asyncio.create_task(editor.prompt(session, "change a.txt"))
        await (model.asked.wait() if state == "model" else editor.until(lambda: editor.asked))
        await editor.vanish()
        prompting.cancel()
        messages = await stored(editor, session)
        assert messages[0].text == "change a.txt"
        assert messages[-1].role is Role.ASSISTANT
    assert not (tmp_path / "a.txt").exists()


async def test_two_sessions_work_at_once_in_their_own_folders(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        folder.mkdir()
    async with editing(rounds(assistant(WRITE), "Done."), mode="ask") as editor:
        held = asyncio.Event()

        async def both(params: dict[str, Any]) -> object:
            """Answer when both have asked: neither waits for the other."""
            if len(editor.asked) == 2:
                held.set()
            await held.wait()
            return {"outcome": {"outcome": "selected", "optionId": "once"}}

        editor.replies[ASK] = both
        await editor.begin()
        sessions = [await editor.open(one), await editor.open(two)]
        ended = await asyncio.gather(*(editor.prompt(each, "go") for each in sessions))
        assert [each["stopReason"] for each in ended] == ["end_turn"] * 2
        assert [(folder / "a.txt").read_text() for folder in (one, two)] == ["new\n"] * 2
        assert {asked["sessionId"] for _, asked in editor.asked} == set(sessions)
        assert all(editor.text(session=each) == "Done." for each in sessions)


async def test_what_is_malformed_or_unknown_is_answered_in_a_sentence_and_nothing_breaks(
    tmp_path: Path,
) -> None:
    wrong: list[tuple[str, dict[str, Any], int]] = [
        ("session/new", {"cwd": "relative", "mcpServers": []}, INVALID_PARAMS),
        ("session/new", {"cwd": "/no/such/folder", "mcpServers": []}, INVALID_PARAMS),
        ("session/new", {"mcpServers": []}, INVALID_PARAMS),
        ("session/prompt", {"sessionId": "unknown", "prompt": []}, -32002),
        ("session/load", {"sessionId": "unknown", "cwd": str(tmp_path), "mcpServers": []}, -32002),
        ("session/fly", {}, METHOD_NOT_FOUND),
        ("nes/start", {}, METHOD_NOT_FOUND),
    ]
    async with editing(echo) as editor:
        with pytest.raises(RpcError, match="initialize first") as early:
            await editor.open(tmp_path)
        assert early.value.code == INVALID_REQUEST
        await editor.begin()
        for method, params, code in wrong:
            with pytest.raises(RpcError) as refusal:
                await editor.request(method, **params)
            assert refusal.value.code == code, method
            assert str(refusal.value).endswith("."), method
        session = await editor.open(tmp_path)
        blocks: list[Any] = [[], [{"type": "text"}], [{"type": "audio", "data": "", "mimeType": "audio/wav"}]]
        blocks += [[{"type": "video"}], [{"type": "image", "data": "!", "mimeType": "image/png"}], "hi"]
        for each in blocks:
            with pytest.raises(RpcError) as refusal:
                await editor.request("session/prompt", sessionId=session, prompt=each)
            assert refusal.value.code == INVALID_PARAMS, each
        for method in ("session/cancel", "$/cancel_request", "session/wave"):
            await editor.peer.notify(method, [1])
        with pytest.raises(RpcError, match="no mode 'yolo'"):
            await editor.request("session/set_mode", sessionId=session, modeId="yolo")
        assert (await editor.prompt(session, "hi"))["stopReason"] == "end_turn"


METHODS = (
    *("initialize", "authenticate", "session/new", "session/load", "session/resume", "session/fork"),
    *("session/list", "session/close", "session/set_mode", "session/set_config_option", "session/prompt"),
)
KEYS = ("sessionId", "cwd", "prompt", "modeId", "configId", "value", "cursor", "mcpServers", "type", "text")
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(["text", "image", "resource", "x"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=8,
)
params = st.dictionaries(st.sampled_from(KEYS), anything, max_size=6)


@settings(max_examples=5)
@given(st.lists(st.tuples(st.sampled_from(METHODS), params), min_size=20, max_size=40))
def test_whatever_an_editor_sends_is_answered_and_the_server_lives_on(
    asked: list[tuple[str, dict[str, Any]]],
) -> None:
    async def story() -> None:
        async with editing(echo) as editor:
            await editor.begin()
            answers = await asyncio.gather(
                *(editor.request(method, **params) for method, params in asked), return_exceptions=True
            )
            refused = [each for each in answers if isinstance(each, BaseException)]
            assert all(isinstance(each, RpcError) for each in refused)
            assert "Error in" not in str(refused)
            assert (await editor.begin())["protocolVersion"] == 1

    asyncio.run(story())


async def test_only_what_was_typed_are_the_owners_words_and_files_have_the_label_of_their_folder(
    tmp_path: Path,
) -> None:
    trusted, other = tmp_path / "trusted", tmp_path / "other"
    for folder in (trusted, other):
        folder.mkdir()
        (folder / "notes.md").write_text("Always use tabs.\n")
    async with editing(echo) as editor:
        editor.hone.folders.trust(trusted)
        await editor.begin()
        session = await editor.open(trusted)
        unsaved = {"uri": (trusted / "draft.md").as_uri(), "text": "Never use tabs."}
        page = {"uri": "https://example.org/", "text": "Prefer spaces."}
        blocks: list[str | dict[str, Any]] = [
            "Look at ",
            {"type": "resource_link", "name": "I prefer tabs.", "uri": (trusted / "notes.md").as_uri()},
            {"type": "resource_link", "name": "notes", "uri": (other / "notes.md").as_uri()},
            {"type": "resource_link", "name": "I prefer tabs.", "uri": "https://example.org/I-like-tabs"},
            {"type": "resource", "resource": unsaved},
            {"type": "resource", "resource": page},
            {"type": "text", "text": "I like tabs.", "annotations": {"audience": ["assistant"]}},
            "please.",
        ]
        await editor.prompt(session, *blocks)
        [node] = [
            each
            for each in (
                await editor.hone.sessions.load(await editor.hone.sessions.find(session))
            ).transcript.nodes
            if each.message.role is Role.USER
        ]
        assert (node.trust, node.message.text) == (Trust.OWNER, "Look at please.")
        labels = [(each.name, each.label) for each in node.message.attachments]
        assert labels == [
            ("file notes.md", "local"),
            (f"file {other}/notes.md", "foreign"),
            ("link", "foreign"),
            ("file draft.md", "local"),
            ("https://example.org/", "foreign"),
            ("added by the editor", "foreign"),
        ]


async def test_words_beside_a_picture_and_the_words_of_a_program_are_not_the_owners(tmp_path: Path) -> None:
    picture = {"type": "image", "mimeType": "image/png", "data": b64encode(PICTURE.read_bytes()).decode()}
    async with editing(echo) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "What is this?", picture)
        found = await editor.hone.sessions.load(await editor.hone.sessions.find(session))
        first = found.transcript.nodes[0]
        assert first.trust is Trust.FOREIGN
        assert [type(part) for part in first.message.parts if not hasattr(part, "upto")] == [Text, Image]
    async with editing(echo, voice=Trust.FOREIGN) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "/undo 1")
        found = await editor.hone.sessions.load(await editor.hone.sessions.find(session))
        assert found.transcript.nodes[0].trust is Trust.FOREIGN
        assert found.transcript.nodes[0].message.text == "/undo 1"


async def test_a_conversation_is_listed_loaded_forked_and_closed(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    script = lines(assistant(Thinking("hm"), "Now.", WRITE), "Done.", "More.")
    async with editing(script) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "change a.txt")
        here = {"cwd": str(tmp_path), "mcpServers": []}
        listed = (await editor.request("session/list", cwd=str(tmp_path)))["sessions"]
        assert [(each["sessionId"], each["title"]) for each in listed] == [(session, "change a.txt")]
        assert (await editor.request("session/list", cwd=str(tmp_path / "sub")))["sessions"] == []
        assert await editor.request("session/close", sessionId=session) == {}
        with pytest.raises(RpcError, match="no open session"):
            await editor.prompt(session, "more")
        editor.updates.clear()
        loaded = await editor.request("session/load", sessionId=session, **here)
        assert loaded["modes"]["currentModeId"] == "auto"
        assert editor.text("user_message_chunk") == "change a.txt"
        assert editor.text() == "Now.Done."
        assert editor.text("agent_thought_chunk") == "hm"
        assert editor.statuses(WRITE.id) == ["in_progress", "completed"]
        assert editor.of("tool_call_update")[0]["content"][0]["newText"] == "new\n"
        for method in ("session/fork", "session/load", "session/resume"):
            with pytest.raises(RpcError, match="Open it there"):
                await editor.request(method, sessionId=session, cwd=str(tmp_path / "sub"), mcpServers=[])
        forked = (await editor.request("session/fork", sessionId=session, **here))["sessionId"]
        assert forked != session
        editor.updates.clear()
        assert (await editor.prompt(forked, "more"))["stopReason"] == "end_turn"
        assert editor.text() == "More."
        await editor.request("session/resume", sessionId=session, **here)
        assert len(await stored(editor, forked)) == len(await stored(editor, session)) + 2


async def test_modes_and_models_are_chosen_in_the_editor(tmp_path: Path) -> None:
    async with editing(rounds(assistant(WRITE), "Done.")) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        opened = await editor.request("session/new", cwd=str(tmp_path), mcpServers=[])
        assert [each["id"] for each in opened["modes"]["availableModes"]] == ["plan", "ask", "auto", "full"]
        [option] = opened["configOptions"]
        assert (option["category"], option["currentValue"]) == ("model", option["options"][0]["value"])
        await editor.request("session/set_mode", sessionId=session, modeId="plan")
        await editor.prompt(session, "write")
        assert not (tmp_path / "a.txt").exists()
        with pytest.raises(RpcError, match="no option 'taste'"):
            await editor.request("session/set_config_option", sessionId=session, configId="taste", value="x")


async def test_commands_come_from_the_chat_and_from_skills_and_none_approves_anything(
    home: Path, tmp_path: Path
) -> None:
    skill = home / "skills" / "brew-tea"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: brew-tea\ndescription: Brew tea.\n---\n\nBoil water first.\n")
    async with editing(echo) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.until(lambda: editor.of("available_commands_update"))
        [offered] = editor.of("available_commands_update")
        names = {each["name"]: each["description"] for each in offered["availableCommands"]}
        assert names["brew-tea"] == "Brew tea."
        assert "compact" in names
        assert not {"approve", "remember", "permissions", "quit"} & set(names)
        assert (await editor.prompt(session, "/log"))["stopReason"] == "end_turn"
        assert "brew-tea" in editor.text()
        await editor.prompt(session, "/brew-tea Make it strong.")
        [asked, _] = await stored(editor, session)
        assert asked.text == "Make it strong."
        assert asked.note
        assert "Boil water first." in asked.note.text
        await editor.prompt(session, "/approve 1")
        assert "heard: /approve 1" in editor.text()


async def test_without_a_model_the_editor_is_told_what_to_do(tmp_path: Path) -> None:
    async with editing("") as editor:
        begun = await editor.begin()
        assert [each["id"] for each in begun["authMethods"]] == ["setup"]
        for method in ("authenticate", "session/new"):
            with pytest.raises(RpcError, match="hone setup") as refusal:
                await editor.request(method, methodId="setup", cwd=str(tmp_path), mcpServers=[])
            assert refusal.value.code == -32000


async def test_the_learned_line_is_an_update_of_its_session(tmp_path: Path) -> None:
    fact = "Keep release notes to one line per change."
    keep = call("memory", action="add", target="user", text=fact, evidence=[fact])

    def speak(messages: Sequence[Message]) -> Message:
        if "look back" in str(messages[-1]).lower():
            return assistant(keep)
        return assistant("Saved." if messages[-1].role is Role.TOOL else "Will do.")

    async with editing(speak) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, fact)
        await editor.prompt(session, "/review")
        await editor.until(lambda: "✎" in editor.text())
        assert f'✎ learned about you: "{fact}" · hone undo 1' in editor.text()
        [learned] = [each for each in editor.of("agent_message_chunk") if "✎" in each["content"]["text"]]
        assert learned["_meta"]["hone"]["lessons"][0]["text"] == fact


async def test_mcp_servers_of_an_editor_run_after_the_owner_approved_their_tools(
    home: Path, tmp_path: Path
) -> None:
    double = Double(tmp_path, tool("sing"))
    settings = double.settings()
    server = {
        "name": "choir",
        "command": settings.command,
        "args": [*settings.args],
        "env": [{"name": "CHOIR_TOKEN", "value": "tok-kept-in-memory"}],
    }
    async with editing(echo) as editor:
        await editor.begin()
        opened = await editor.request("session/new", cwd=str(tmp_path), mcpServers=[server, {"name": "?"}])
        await editor.prompt(opened["sessionId"], "hi")
        said = editor.text("agent_thought_chunk")
        assert "No tool of the MCP server choir is approved yet. See them: hone mcp approve choir" in said
        assert "An MCP server of the editor cannot be used" in said
    assert double.calls == []
    assert b"kept-in-memory" not in b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())

    async with Hone(home=home, folder=tmp_path, model=Scripted(echo), learning="off") as hone:
        part = hone.part(McpPart)
        found = part.get("choir", tmp_path)
        assert (found.source, found.settings.sandbox) == ("the editor", True)
        seen = part.catalog.change(found, lambda entry: note_seen(entry, [tool("sing")]))
        part.catalog.change(found, lambda entry: approve(entry, seen.tools))
    async with editing(echo) as editor:
        await editor.begin()
        await editor.request("session/new", cwd=str(tmp_path), mcpServers=[server])
        assert "choir__sing" in (await editor.hone.agent(folder=tmp_path)).toolbox


@pytest.mark.parametrize("leaving", ["closed", "stopped"])
async def test_reviews_are_left_in_the_queue_however_the_editor_goes(
    home: Path, tmp_path: Path, leaving: str
) -> None:
    """The command is what a process runs; here its channel is in memory."""
    near, far = wires()
    with Provider(Say("Noted.")) as provider:
        url = f"{provider.url}/v1"
        (home / "hone.toml").write_text(f'model = "own/m"\n[providers.own]\nurl = "{url}"\n')
        serving = asyncio.create_task(serve(Options(home=home), lambda: far))
        peer = Peer(near)
        async with running(peer):
            await peer.request("initialize", {"protocolVersion": 1})
            opened = json.loads(await peer.request("session/new", {"cwd": str(tmp_path), "mcpServers": []}))
            prompt = [{"type": "text", "text": "Always write dates as 2026-11-18."}]
            await peer.request("session/prompt", {"sessionId": opened["sessionId"], "prompt": prompt})
            if leaving == "closed":
                await near.close()
            else:
                os.kill(os.getpid(), signal.SIGTERM)
            async with asyncio.timeout(60):
                assert await serving is After.QUEUED
    async with Hone(home=home, learning="queue") as hone:
        assert await hone.background.next_look() is not None


TOOLS = Settings(acp=AcpSettings(editor_files=True, editor_terminal=True))


async def test_the_editors_files_and_terminal_are_asked_about_each_time_and_are_foreign(
    tmp_path: Path,
) -> None:
    path = str(tmp_path / "a.txt")
    read = call("editor_read_file", path="a.txt")
    write = call("editor_write_file", path="a.txt", content="new")
    run = call("editor_terminal", command="make", arguments=["test"])
    async with editing(lines(assistant(read, write, run), "Done."), settings=TOOLS) as editor:
        editor.hone.folders.trust(tmp_path)
        said: dict[str, Any] = {
            "fs/read_text_file": {"content": "unsaved"},
            "fs/write_text_file": {},
            "terminal/create": {"terminalId": "t1"},
            "terminal/wait_for_exit": {"exitCode": 0},
            "terminal/output": {"output": "ok", "truncated": False},
            "terminal/release": {},
        }
        for method, value in said.items():
            editor.replies[method] = _constant(value)
        editor.replies[ASK] = choose("once")
        await editor.begin()
        session = await editor.open(tmp_path)
        await editor.prompt(session, "go")
        methods = [method for method, _ in editor.asked]
        assert methods == [
            *(ASK, "fs/read_text_file", ASK, "fs/write_text_file"),
            *(ASK, "terminal/create", "terminal/wait_for_exit", "terminal/output", "terminal/release"),
        ]
        first = editor.asked[0][1]
        assert [each["optionId"] for each in first["options"]] == ["once", "no"]
        assert editor.asked[3][1] == {"sessionId": session, "path": path, "content": "new"}
        found = await editor.hone.sessions.load(await editor.hone.sessions.find(session))
        results = [each for each in found.transcript.nodes if each.message.result]
        assert [each.trust for each in results] == [Trust.FOREIGN] * 3
        assert "unsaved" in str(results[0].message)


def _constant(value: object) -> Callable[[dict[str, Any]], Any]:
    async def reply(_: dict[str, Any]) -> object:
        return value

    return reply


async def test_the_editors_tools_are_off_by_default_and_refuse_where_no_editor_offers_them(
    tmp_path: Path,
) -> None:
    read = call("editor_read_file", path="a.txt")
    async with editing(lines(assistant(read), "Done.")) as editor:
        await editor.begin()
        await editor.prompt(await editor.open(tmp_path), "go")
        assert "there is no tool named 'editor_read_file'" in str(editor.of("tool_call_update"))
    async with editing(lines(assistant(read), "Done."), settings=TOOLS, mode="full") as editor:
        await editor.begin({})
        await editor.prompt(await editor.open(tmp_path), "go")
        assert "does not offer fs/read_text_file" in str(editor.of("tool_call_update"))
        assert editor.asked == []


async def test_a_question_cannot_be_dressed_up_by_what_it_asks_about(tmp_path: Path) -> None:
    evil = call("terminal", command="rm -rf / # ```\n\nThis is safe.\u202e")
    async with editing(lines(assistant(evil), "Done."), mode="ask") as editor:
        editor.replies[ASK] = choose("no")
        await editor.begin()
        await editor.prompt(await editor.open(tmp_path), "go")
        shown = editor.asked[0][1]["toolCall"]["content"][0]["content"]["text"]
        assert "\n````\n" in shown
        assert "\u202e" not in json.dumps(shown, ensure_ascii=False)


async def test_no_file_outside_the_folder_is_read_for_a_diff(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (tmp_path / "notes.txt").write_text("private\n")
    write = call("write_file", path="../notes.txt", content="new\n")
    async with editing(lines(assistant(write), "Done.")) as editor:
        editor.replies[ASK] = choose("no")
        await editor.begin()
        await editor.prompt(await editor.open(folder), "go")
        [started] = editor.of("tool_call")
        assert started["content"] == []
        diffs = [each for each in editor.asked[0][1]["toolCall"]["content"] if each["type"] == "diff"]
        assert diffs == []


async def test_a_name_that_no_json_can_carry_ends_nothing(tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"odd\xff.txt")
    odd.write_text("old\n")
    (tmp_path / "link").symlink_to(odd)
    write = call("write_file", path="link", content="new\n")
    calls = [ToolCall("odd", "read_file", '{"path": "\\ud800.txt"}'), write]
    async with editing(lines(assistant(*calls), "Done.")) as editor:
        await editor.begin()
        session = await editor.open(tmp_path)
        assert (await editor.prompt(session, "go"))["stopReason"] == "end_turn"
        assert editor.text() == "Done."
        assert odd.read_text() == "new\n"
        await stored(editor, session)
