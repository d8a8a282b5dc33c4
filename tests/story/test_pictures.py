"""A picture reaches the model without its metadata and labeled by where it lies, or is refused at once."""

from base64 import b64encode
from pathlib import Path

import pytest
from playwright.async_api import expect

from hone import Hone, Settings
from hone.core.errors import Refused
from hone.core.messages import Image
from hone.core.trust import Trust
from hone.files.documents import FileDocuments
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, echo, lines
from hone.models.vision import is_blind
from hone.runtime.pictures import find_pictures
from hone.runtime.trust import Folders
from hone.settings.sections import ModelSettings
from tests.browser.tab import chromium, opened
from tests.cli.driving import environment, hone, terminal
from tests.core.test_images import CANARY, FILES, FOLDER
from tests.web.rig import listen, running

PASTE = """(field, data) => {
  const bytes = Uint8Array.from(atob(data), (letter) => letter.charCodeAt(0));
  const clipboardData = new DataTransfer();
  clipboardData.items.add(new File([bytes], "photo.jpg", { type: "image/jpeg" }));
  field.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
}"""
CLEAN = b64encode((FOLDER / "photo.clean.jpg").read_bytes())


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def place_pictures(folder: Path) -> None:
    for name in ("photo.jpg", "drawing.png"):
        (folder / name).write_bytes(FILES[name])


@pytest.mark.parametrize("model", ["openai/scripted", "anthropic/scripted"])
async def test_run_shows_pictures_without_metadata_in_every_format(
    model: str, home: Path, tmp_path: Path
) -> None:
    place_pictures(tmp_path)
    async with FakeProvider(lines("Two pictures.")) as stage:
        env = environment(home, stage, HONE_MODEL=model)
        flags = ("--image", "photo.jpg", "--image", str(tmp_path / "drawing.png"))
        ended = await hone("run", *flags, "what is this?", env=env, folder=tmp_path)
        assert (ended.code, ended.out) == (0, "Two pictures.\n"), ended.err
        assert (stage.invalid, CLEAN in stage.bodies[0]) == ([], True)
        assert CANARY not in stage.bodies[0] + everything(home)
        again = await hone("-c", "run", "and now?", env=env, folder=tmp_path)
        assert (again.code, CLEAN in stage.bodies[1], stage.invalid) == (0, True, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--image", "nowhere.png"], "nowhere.png cannot be read: No such file or directory."),
        (
            ["--image", "words.png"],
            "words.png is not a picture that models can read. Use PNG, JPEG, GIF or WebP.",
        ),
        (["--image", "half.png"], "half.png is damaged or cut off"),
        (
            ["--image", "photo.jpg", "--model", "openai/gpt-3.5-turbo"],
            "openai/gpt-3.5-turbo cannot see pictures.",
        ),
    ],
)
async def test_what_cannot_be_shown_is_refused_before_anything_is_sent_or_stored(
    arguments: list[str], said: str, home: Path, tmp_path: Path
) -> None:
    place_pictures(tmp_path)
    (tmp_path / "words.png").write_text("just words")
    (tmp_path / "half.png").write_bytes(FILES["drawing.png"][:60])
    async with FakeProvider(echo) as stage:
        env = environment(home, stage)
        ended = await hone("run", *arguments, "what is this?", env=env, folder=tmp_path)
        assert (ended.code, said in ended.err, "Traceback" in ended.err) == (1, True, False), ended.err
        assert stage.bodies == []
    assert b"what is this" not in everything(home)


async def test_a_picture_that_is_named_in_the_chat_goes_with_the_words(home: Path, tmp_path: Path) -> None:
    place_pictures(tmp_path)
    async with FakeProvider(echo) as stage:
        async with terminal(env=environment(home, stage), folder=tmp_path) as screen:
            await screen.enter("What is on @photo.jpg and @gone.png?")
            await screen.sees("✗ There is no picture gone.png.")
            assert stage.bodies == []
            await screen.enter("What is on @photo.jpg?")
            await screen.sees("with photo.jpg (metadata removed)", "1 call")
            assert await screen.leave() == 0
        assert (CLEAN in stage.bodies[-1], stage.invalid) == (True, [])


@pytest.mark.parametrize(("trusted", "label"), [(True, Trust.LOCAL), (False, Trust.FOREIGN)])
async def test_a_message_is_trusted_no_more_than_its_picture(
    trusted: bool, label: Trust, home: Path, tmp_path: Path
) -> None:
    place_pictures(tmp_path)
    if trusted:
        Folders.of(FileDocuments(home)).trust(tmp_path)
    model = Scripted(lines("A photo."))
    async with Hone(home=home, folder=tmp_path, model=model) as agent:
        await agent.run("what is this?", images=[tmp_path / "photo.jpg"])
    [node, *_] = model.calls[0][1].nodes
    [image] = [part for part in node.message.parts if isinstance(part, Image)]
    assert (node.trust, image.media_type, image.data.encode()) == (label, "image/jpeg", CLEAN)


async def test_settings_say_whether_a_model_sees(home: Path, tmp_path: Path) -> None:
    place_pictures(tmp_path)
    model = Scripted(lines("A photo."))
    settings = Settings(models={"custom/scripted": ModelSettings(vision=False)})
    async with Hone(home=home, folder=tmp_path, model=model, settings=settings) as agent:
        with pytest.raises(Refused, match="vision = true under"):
            await agent.run("what is this?", images=[tmp_path / "photo.jpg"])
        assert (model.calls, await agent.sessions.list()) == ([], ())


async def test_a_conversation_with_pictures_does_not_go_to_a_model_that_cannot_see(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place_pictures(tmp_path)
    async with FakeProvider(echo) as stage:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        monkeypatch.setenv("OPENAI_BASE_URL", f"{stage.url}/v1")
        async with Hone(home=home, folder=tmp_path, model="openai/scripted") as agent:
            await agent.run("what is this?", images=[tmp_path / "photo.jpg"])
            [summary] = await agent.sessions.list()
            with pytest.raises(Refused, match="openai/o3-mini cannot see pictures"):
                await agent.resume(summary.header.id, "openai/o3-mini")
            again = await agent.resume(summary.header.id, "openai/other")
            assert (await again.send("and now?")).error == ""
        assert (len(stage.bodies), stage.invalid) == (2, [])


async def test_the_endpoint_takes_pictures_without_metadata_and_as_foreign(
    home: Path, tmp_path: Path
) -> None:
    def asked(data: bytes, model: str = "hone") -> dict[str, object]:
        url = {"url": f"data:image/jpeg;base64,{b64encode(data).decode()}"}
        content = [{"type": "text", "text": "what?"}, {"type": "image_url", "image_url": url}]
        return {"model": model, "messages": [{"role": "user", "content": content}]}

    async with running(home, tmp_path, echo) as visit:
        await visit.post("/v1/chat/completions", **asked(FILES["photo.jpg"]))
        assert (CLEAN in visit.stage.bodies[0], CANARY in visit.stage.bodies[0]) == (True, False)
        [summary] = await visit.state.hone.sessions.list()
        stored = await visit.state.hone.sessions.load(summary.header.id)
        assert stored.transcript.nodes[0].trust is Trust.FOREIGN
        for body, code in (
            (asked(b"no picture"), "unsupported_value"),
            (asked(FILES["photo.jpg"], "stage/gpt-3.5-turbo"), "model_without_vision"),
        ):
            refused = await visit.client.post("/v1/chat/completions", json=body)
            assert (refused.status_code, refused.json()["error"]["code"]) == (400, code)
        assert len(visit.stage.bodies) == 1


async def test_the_page_takes_pictures_without_metadata_and_as_foreign(home: Path, tmp_path: Path) -> None:
    address = f"data:image/jpeg;base64,{b64encode(FILES['photo.jpg']).decode()}"
    async with running(home, tmp_path, echo) as visit:
        for wrong in ("http://127.0.0.1/x.png", "data:image/png;base64,AAAA", "data:image/png;base64,=!"):
            refused = await visit.client.post("/api/sessions", json={"text": "what?", "images": [wrong]})
            assert (refused.status_code, refused.json()["error"]["type"]) == (422, "refused")
        begun = await visit.post("/api/sessions", text="what?", images=[address])
        await listen(visit.client, f"/api/sessions/{begun['session']}/events", "ended")
        assert [CLEAN in body for body in visit.stage.bodies] == [True]
        stored = await visit.state.hone.sessions.load(begun["session"])
        assert stored.transcript.nodes[0].trust is Trust.FOREIGN
    assert CANARY not in everything(home)


async def test_a_picture_is_pasted_on_the_page(home: Path, tmp_path: Path) -> None:
    async with running(home, tmp_path, echo) as visit, chromium() as browser, opened(browser, visit) as tab:
        field = tab.page.get_by_label("Message")
        held = tab.page.get_by_label("Attached").get_by_role("listitem")
        for count in (1, 2):
            await field.evaluate(PASTE, b64encode(FILES["photo.jpg"]).decode())
            await expect(held).to_have_count(count)
        await held.first.get_by_role("button").click()
        await expect(held).to_have_count(1)
        await field.fill("what is this?")
        await tab.page.get_by_role("button", name="Send").click()
        await expect(tab.page.get_by_role("img", name="A picture, image/jpeg")).to_be_visible()
        await expect(held).to_have_count(0)
        assert visit.stage.bodies[0].count(CLEAN) == 1
        assert tab.trouble.said == []


def test_pictures_are_found_in_words_as_people_write_and_terminals_paste_them(tmp_path: Path) -> None:
    for name in ("a.png", "b c.JPG", "it's.webp"):
        (tmp_path / name).touch()
    place = str(tmp_path)
    for words, names in (
        ("(look at @a.png), please", ["a.png"]),
        ("look at @a.png please", ["a.png"]),
        ('@"b c.JPG" and @a.png and @a.png', ["b c.JPG", "a.png"]),
        (f"{place}/b\\ c.JPG", ["b c.JPG"]),
        (f"'{place}/b c.JPG' what is it?", ["b c.JPG"]),
        (f"it's {place}/a.png", ["a.png"]),
        ("a.png is not meant", []),
        (f"{place}/gone.png is not there", []),
        ("write to me@a.png.example", []),
    ):
        assert [each.name for each in find_pictures(words, tmp_path)] == names, words
    with pytest.raises(Refused):
        find_pictures("@gone.png", tmp_path)


BLIND = """
deepseek/deepseek-chat openrouter/deepseek/deepseek-r1 ollama/llama3.1:8b ollama/llama3.2:3b ollama/qwen3:8b
ollama/qwen2.5-coder:7b ollama/gpt-oss:20b openai/gpt-3.5-turbo openai/o3-mini local/smollm2
"""
SEEING = """
anthropic/claude-sonnet-5-5 openai/gpt-5.4 openai/o3 ollama/llama3.2-vision ollama/llama4 ollama/qwen3-vl:8b
ollama/qwen3.5:9b ollama/gemma3 ollama/phi4-multimodal custom/scripted mine/unheard-of
"""


def test_only_models_that_are_known_not_to_see_are_refused() -> None:
    assert [each for each in BLIND.split() if not is_blind(each)] == []
    assert [each for each in SEEING.split() if is_blind(each)] == []
