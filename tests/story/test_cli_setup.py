"""I5: `hone setup`: from nothing to a first answer; what does not work is said and changes nothing."""

import asyncio
import json
import re
import time
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from hone.models.fake_provider import FakeProvider
from hone.models.fake_provider.faults import refusing
from hone.models.scripted import Script, echo, lines, rules
from hone.stores.keys import FILE
from tests.cli.driving import ENTER, Terminal, environment, hone, terminal
from tests.conftest import Figures
from tests.web.rig import running

MINUTE = 60.0
KEY = "zq7Lm-Blue_Heron+41/x9"
OWN = "# mine\ncalls = 7   # enough\n"


async def asked(screen: Terminal, question: str) -> None:
    """Wait until the cursor stands behind a question."""
    await screen.until(lambda: question in screen.rows[screen.row], question)


async def pick(screen: Terminal, words: str) -> None:
    """Type the number of the choice with these words."""
    await asked(screen, "Which one? [1]:")
    row = [each for each in screen.rows if words in each][-1]
    screen.type(row.partition(".")[0].strip().encode() + ENTER)


async def give_address(screen: Terminal, address: str) -> None:
    await pick(screen, "a server at another address")
    await asked(screen, "Its address, such as 127.0.0.1:8000:")
    screen.type(address.encode() + ENTER)


async def test_from_nothing_to_a_first_answer_of_a_local_server_in_less_than_a_minute(
    home: Path, tmp_path: Path, figures: Figures
) -> None:
    env, began = environment(home / "new"), time.monotonic()
    script = rules(("Which day", lines("It is a Tuesday.")), otherwise=lines("Hello there."))
    async with asyncio.timeout(MINUTE), FakeProvider(script) as stage:
        place = stage.url.removeprefix("http://")
        async with terminal("setup", env=env, folder=tmp_path, trusted=False) as screen:
            await screen.sees("No model can be used yet")
            await give_address(screen, place)
            await screen.sees("✓ mine/scripted answered: Hello there.", "Talk to it now? [Y/n]:")
            screen.type(ENTER)
            await screen.enter("Which day is it?")
            await screen.sees("It is a Tuesday.")
            seconds = time.monotonic() - began
            assert await screen.leave() == 0
    written = tomllib.loads((home / "new" / "hone.toml").read_text())
    assert written == {"model": "mine/scripted", "providers": {"mine": {"url": f"{stage.url}/v1"}}}
    figures(f"{seconds:.1f} s and {len(stage.bodies)} requests from nothing to the first answer in a chat")


async def test_what_does_not_work_is_said_and_another_choice_can_be_made(home: Path, tmp_path: Path) -> None:
    (home / "hone.toml").write_text(OWN)
    async with (
        running(tmp_path / "server", tmp_path, echo) as other,
        FakeProvider(lines("Hello there.")) as stage,
    ):
        with refusing() as nobody:
            async with terminal("setup", env=environment(home), folder=tmp_path) as screen:
                await give_address(screen, nobody)
                await screen.sees(f"✗ Nothing answers at {nobody.removeprefix('http://')}.")
                await give_address(screen, f"{other.url}/v1/")
                await screen.sees("Hone's own endpoint (hone serve)")
                await give_address(screen, "not an address")
                await screen.sees("✗ The address of the model server")
                assert (home / "hone.toml").read_text() == OWN
                await give_address(screen, f"{stage.url}/v1/chat/completions")
                await screen.sees("✓ mine/scripted answered", "Talk to it now?")
                screen.type(b"n" + ENTER)
                await screen.sees("Start it any time: hone")
                assert await screen.ended() == 0
    text = (home / "hone.toml").read_text()
    assert text == f'model = "mine/scripted"\n{OWN}\n[providers.mine]\nurl = "{stage.url}/v1"\n'


async def test_a_key_is_asked_for_tested_and_kept_only_if_it_works(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(echo, key=KEY) as stage:
        env = environment(home, ANTHROPIC_BASE_URL=stage.url)
        async with terminal("setup", env=env, folder=tmp_path) as screen:
            for typed, outcome in (
                ("wrong-wrong-wrong", "was refused and is not kept"),
                (KEY, "✓ anthropic/"),
            ):
                await pick(screen, "asks for a key: ANTHROPIC_API_KEY")
                await asked(screen, "ANTHROPIC_API_KEY (not shown):")
                screen.type(typed.encode() + ENTER)
                await screen.sees(outcome)
                assert typed.encode() not in screen.data
            await screen.sees("Talk to it now?")
            assert await screen.interrupt() == 130
        assert (await hone("run", "hi", env=env)).code == 0
    kept = json.loads((home / FILE).read_text())["keys"]
    assert {name: each["value"] for name, each in kept.items()} == {"ANTHROPIC_API_KEY": KEY}


@pytest.mark.parametrize(
    ("flags", "more", "model"),
    [
        (["--yes"], {"OPENAI_API_KEY": "sk-test"}, "openai/scripted"),
        pytest.param(
            ["--model", "openai/other"], {"OPENAI_API_KEY": "sk-test"}, "openai/other", marks=pytest.mark.long
        ),
        pytest.param(["--url", "STAGE"], {}, "mine/scripted", marks=pytest.mark.long),
        (["--url", "STAGE/v1", "--name", "gpu", "--model", "big"], {}, "gpu/big"),
    ],
)
async def test_without_a_terminal_flags_choose(
    flags: list[str], more: dict[str, str], model: str, home: Path
) -> None:
    (home / "hone.toml").write_text(OWN)
    async with FakeProvider(echo) as stage:
        env = environment(home, OPENAI_BASE_URL=f"{stage.url}/v1", **more)
        ended = await hone("setup", *(each.replace("STAGE", stage.url) for each in flags), env=env)
        assert (ended.code, f"✓ {model} answered" in ended.out) == (0, True), ended.err
        assert OWN in (home / "hone.toml").read_text()
        assert tomllib.loads((home / "hone.toml").read_text())["model"] == model
        assert (await hone("run", "hi", env=env)).code == 0
        assert stage.invalid == []


@pytest.mark.parametrize(
    ("flags", "script", "said"),
    [
        ([], echo, "Hone cannot ask here."),
        (["--yes"], echo, "No model can be used yet"),
        (["--url", "STAGE"], lines(""), "The model sent an empty reply."),
        (["--url", "STAGE/nowhere"], echo, "does not answer with a list of models (404)"),
        (["--model", "openai/x"], echo, "hone keys set openai"),
        (["--model", "nobody/x"], echo, "does not name a known provider"),
    ],
)
async def test_what_cannot_be_used_is_not_written(
    flags: list[str], script: Script, said: str, home: Path
) -> None:
    (home / "hone.toml").write_text(OWN)
    async with FakeProvider(script) as stage:
        flags = [each.replace("STAGE", stage.url) for each in flags]
        ended = await hone("setup", *flags, env=environment(home))
    assert (ended.code in (1, 2), said in ended.err) == (True, True), ended.err
    assert "Traceback" not in ended.err
    assert (home / "hone.toml").read_text() == OWN


async def test_a_server_with_a_key_is_used_with_the_variable_that_holds_it(home: Path) -> None:
    async with FakeProvider(echo, key=KEY) as stage:
        env = environment(home, GPU_KEY=KEY)
        refused = await hone("setup", "--url", stage.url, env=env)
        assert (refused.code, "--key MINE_API_KEY" in refused.err) == (1, True)
        ended = await hone("setup", "--url", stage.url, "--key", "GPU_KEY", env=env | {"HONE_MODEL": "a/b"})
        assert (ended.code, "HONE_MODEL is set to a/b and wins" in ended.err) == (0, True), ended.err
        assert (await hone("run", "hi", env=env)).code == 0
    assert KEY not in (home / "hone.toml").read_text() + ended.out + ended.err


async def test_a_server_that_lists_nothing_without_a_key_asks_for_one(home: Path, tmp_path: Path) -> None:
    async with FakeProvider(echo, key=KEY) as stage, closed(stage) as place:
        refused = await hone("setup", "--url", place, env=environment(home))
        assert (refused.code, "--key MINE_API_KEY" in refused.err) == (1, True)
        async with terminal("setup", env=environment(home), folder=tmp_path) as screen:
            await give_address(screen, place)
            await asked(screen, "MINE_API_KEY (not shown):")
            screen.type(KEY.encode() + ENTER)
            await screen.sees("Stored MINE_API_KEY in", "✓ mine/scripted answered", "Talk to it now?")
            screen.type(b"n" + ENTER)
            assert await screen.ended() == 0
            assert KEY.encode() not in screen.data
        assert (await hone("run", "hi", env=environment(home))).code == 0
    written = tomllib.loads((home / "hone.toml").read_text())
    assert written["providers"]["mine"]["key"] == "MINE_API_KEY"


@asynccontextmanager
async def closed(stage: FakeProvider) -> AsyncIterator[str]:
    """A door before a scripted provider: without the key nobody gets to it, not even to its models."""
    port = int(stage.url.rpartition(":")[2])

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        if KEY.encode() not in head:
            writer.write(b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        else:
            beyond, onward = await asyncio.open_connection("127.0.0.1", port)
            length = (
                int(re.findall(rb"content-length: (\d+)", head, re.IGNORECASE)[0]) if b"POST" in head else 0
            )
            onward.write(head.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            onward.write(await reader.readexactly(length))
            writer.write(await beyond.read())
            onward.close()
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_hone_without_a_model_points_at_setup(home: Path, tmp_path: Path) -> None:
    async with terminal(env=environment(home), folder=tmp_path) as screen:
        await screen.sees("No model to talk to yet. Choose and test one with: hone setup")
        assert await screen.ended() == 2
