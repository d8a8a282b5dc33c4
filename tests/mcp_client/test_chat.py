"""Resources and prompts in the chat are the server's words, not the owner's; what one printed is erasable."""

from pathlib import Path

import pytest

from hone import Hone, Scripted, lines
from hone.cli.composing import Composer
from hone.cli.context import Interrupts
from hone.cli.render import Paint
from hone.cli.slash import ChatState, SlashRequest, obey, parse
from hone.core.erasure import Erasure
from hone.core.messages import Attachment
from hone.core.value import replace
from hone.features.mcp.client.catalog import Catalog
from hone.features.mcp.client.erasing import ErrorsEraser
from hone.features.mcp.part import McpPart
from tests.mcp_client.stage import Double, configure, tool


def attachments(parts: object) -> list[Attachment]:
    return [each for each in parts if isinstance(each, Attachment)]  # type: ignore[attr-defined]


async def test_a_resource_is_attached_and_a_prompt_is_sent_as_foreign_text(tmp_path: Path) -> None:
    double = Double(tmp_path, tool("echo"))
    settings = configure({"demo": double.settings()})
    async with Hone(model=Scripted(lines("x")), folder=tmp_path, settings=settings, learning="off") as hone:
        session = await hone.session()
        said: list[str] = []
        composer = Composer(hone, Interrupts(), Paint(False), said.append)
        message, voice = await composer.compose("Read @demo:a, and @nobody:a.", session)
        assert not isinstance(message, str)
        assert composer.attaches("Read @demo:a", session)
        [attached] = attachments(message.parts)
        assert (attached.label, attached.name) == ("foreign", "resource demo:test://a")
        assert "words of a resource" in attached.text
        assert voice is None
        assert any("as foreign text" in each for each in said)

        state = ChatState(hone, session)
        assert parse("/demo:greet who=Ada") == ("demo:greet", "who=Ada")
        request = await obey(state, "demo:greet", 'who="Ada B"')
        assert isinstance(request, SlashRequest)
        assert request.message
        [prompt] = attachments(request.message.parts)
        assert (prompt.text, prompt.label) == ("Greet Ada B.", "foreign")
        assert "This prompt needs who" in str(await obey(state, "demo:greet", ""))
        assert "has no prompt 'other'" in str(await obey(state, "demo:other", ""))
        assert "There is no command" in str(await obey(state, "none:greet", ""))


@pytest.mark.parametrize("what", [Erasure(words=("secret words",)), Erasure(sessions=("abc",))])  # type: ignore[arg-type]
async def test_what_a_server_printed_is_erased(tmp_path: Path, what: Erasure) -> None:
    double = Double(tmp_path, tool("echo"))
    settings = configure({"demo": double.settings()})
    async with Hone(model=Scripted(lines("x")), folder=tmp_path, settings=settings, learning="off") as hone:
        server = hone.part(McpPart).get("demo", tmp_path)
        catalog = Catalog(hone.home)
        catalog.change(server, lambda entry: replace(entry, errors="It got secret words."))
        eraser = ErrorsEraser(hone)
        assert [each.count for each in await eraser.find(what)] == [1]
        await eraser.erase(what)
        assert await eraser.find(what) == []
        assert catalog.get(server).errors == ""
