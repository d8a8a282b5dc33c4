"""I5, C5: `hone keys`: a key is asked for, kept where only the owner gets at it, and shown to nobody."""

import json
import os
import sys
from base64 import b64encode
from pathlib import Path

import pytest

from hone import Hone
from hone.core.messages import ToolCall, assistant
from hone.core.permissions import Answer, Question
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import Scripted, call, lines
from hone.stores.keys import FILE
from tests.cli.driving import ENTER, environment, hone, terminal
from tests.conftest import Figures, requires
from tests.mcp_client.stage import DOUBLE, Double, tool

KEY = "zq7Lm-Blue_Heron+41/x9"
"""Without a form by which it could be recognized."""
OTHER = "zq7Lm-Gray_Goose+77/y3"
KEYRING = """
import json, os
class Errors(Exception): pass
class Backend:
    priority = float(os.environ["PRIORITY"])
    place = os.environ["KEYRING_FILE"]
    def _all(self): return json.load(open(self.place)) if os.path.exists(self.place) else {}
    def _put(self, all): json.dump(all, open(self.place, "w"))
    def get_password(self, service, user): return self._all().get(service + user)
    def set_password(self, service, user, word): self._put({**self._all(), service + user: word})
    def delete_password(self, service, user): all = self._all(); del all[service + user]; self._put(all)
def get_keyring(): return Backend()
"""


def everything(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


async def test_a_key_from_standard_input_is_used_and_a_variable_wins_over_it(home: Path) -> None:
    async with FakeProvider(lines("Hello.", "Hello again."), key=KEY) as stage:
        env = environment(home, HONE_MODEL="openai/scripted", OPENAI_BASE_URL=f"{stage.url}/v1")
        missing = await hone("run", "hi", env=env)
        assert (missing.code, "hone keys set openai" in missing.err) == (2, True)
        stored = await hone("keys", "set", "openai", env=env, piped=f"{KEY}\n".encode())
        assert (stored.code, f"Stored OPENAI_API_KEY in {home / FILE}" in stored.out) == (0, True)
        answered = await hone("run", "hi", env=env)
        assert (answered.code, answered.out) == (0, "Hello.\n")
        refused = await hone("run", "hi", env=env | {"OPENAI_API_KEY": OTHER})
        assert (refused.code, "refused the key (401)" in refused.err) == (1, True)
        listed = await hone("keys", "list", "--json", env=env | {"OPENAI_API_KEY": OTHER})
        [row] = json.loads(listed.out)
        assert (row["name"], row["provider"], row["used"]) == ("OPENAI_API_KEY", "openai", "environment")
        shown = [stored, answered, refused, listed]
        shown += [await hone(*words, env=env) for words in (["config"], ["doctor"], ["keys", "list"])]
        assert "OPENAI_API_KEY: stored" in shown[-3].out
        assert "✓ keys: 1 stored" in shown[-2].out
        for each in shown:
            assert KEY not in each.out + each.err
            assert OTHER not in each.out + each.err
        removed = await hone("keys", "remove", "OPENAI_API_KEY", env=env)
        assert (removed.code, (await hone("run", "hi", env=env)).code) == (0, 2)
        assert KEY.encode() not in everything(home)


async def test_a_variable_of_an_mcp_server_is_stored_and_the_server_gets_it(
    home: Path, tmp_path: Path
) -> None:
    double = Double(tmp_path, tool("reveal", "Say what is in the environment."))
    home.mkdir(parents=True, exist_ok=True)
    server = {
        "command": sys.executable,
        "args": ["-I", "-S", str(DOUBLE), str(double.path)],
        "sandbox": False,
    }
    entries = [f"{name} = {json.dumps(value)}\n" for name, value in server.items()]
    (home / "hone.toml").write_text(
        f'[mcp.servers.tracker]\n{"".join(entries)}env = {{TOKEN = "${{TRACKER_TOKEN}}"}}\n'
    )
    env = environment(home)
    without = await hone("mcp", "check", "tracker", env=env, folder=tmp_path)
    assert (without.code, "hone keys set TRACKER_TOKEN" in without.err) == (1, True)
    stored = await hone("keys", "set", "TRACKER_TOKEN", env=env, piped=KEY.encode())
    assert (stored.code, "${TRACKER_TOKEN}" in stored.out) == (0, True)
    listed = await hone("keys", "list", env=env)
    assert "TRACKER_TOKEN" in listed.out
    assert (await hone("mcp", "check", "tracker", env=env, folder=tmp_path)).code == 0
    removed = await hone("keys", "remove", "TRACKER_TOKEN", env=env)
    assert (removed.code, KEY.encode() in everything(home)) == (0, False)


async def test_a_key_is_asked_for_and_not_shown(home: Path, tmp_path: Path) -> None:
    async with terminal("keys", "set", "anthropic", env=environment(home), folder=tmp_path) as screen:
        await screen.sees("ANTHROPIC_API_KEY (not shown):")
        screen.type(KEY.encode() + ENTER)
        await screen.sees("Stored ANTHROPIC_API_KEY in")
        assert await screen.ended() == 0
        assert KEY.encode() not in screen.data
    assert json.loads((home / FILE).read_text())["keys"]["ANTHROPIC_API_KEY"]["value"] == KEY


@pytest.mark.parametrize(
    ("arguments", "piped"),
    [
        (["set", "openai", KEY], b""),
        (["set", KEY], b""),
        (["set", "AKIAIOSFODNN7EXAMPLE"], KEY.encode()),
        (["set", "--", KEY, KEY], KEY.encode()),
        (["remove", KEY], b""),
        (["set", "openai"], b""),
        (["set", "openai"], f"{KEY} {KEY}".encode()),
        (["set", "ollama"], KEY.encode()),
    ],
)
async def test_what_is_refused_stores_nothing_and_does_not_repeat_what_may_be_a_key(
    arguments: list[str], piped: bytes, home: Path
) -> None:
    ended = await hone("keys", *arguments, env=environment(home), piped=piped)
    assert ended.code in (1, 2)
    assert KEY not in ended.out + ended.err
    assert "Traceback" not in ended.err
    assert KEY.encode() not in everything(home)


@pytest.mark.parametrize("priority", ["5", "0.5"])
async def test_the_system_keyring_keeps_it_where_there_is_a_safe_one(
    priority: str, home: Path, tmp_path: Path
) -> None:
    package = tmp_path / "packages" / "keyring"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "core.py").write_text(KEYRING)
    async with FakeProvider(lines("Hello."), key=KEY) as stage:
        env = environment(home, HONE_MODEL="openai/scripted", OPENAI_BASE_URL=f"{stage.url}/v1")
        env |= {
            "PYTHONPATH": str(package.parent),
            "KEYRING_FILE": str(tmp_path / "kept"),
            "PRIORITY": priority,
        }
        stored = await hone("keys", "set", "openai", env=env, piped=KEY.encode())
        assert ("the system keyring" in stored.out) is (priority == "5")
        assert (KEY.encode() in everything(home)) is (priority != "5")
        answered = await hone("run", "hi", env=env)
        assert (answered.out, answered.code) == ("Hello.\n", 0), answered.err
        assert (await hone("keys", "remove", "openai", env=env)).code == 0
        assert KEY.encode() not in everything(home) + everything(tmp_path)


async def test_tools_and_commands_cannot_see_a_key_and_their_results_do_not_show_it(
    tmp_path: Path, figures: Figures
) -> None:
    requires("bwrap")
    around, work = tmp_path / "around", tmp_path / "work"
    home = around / "home"
    await hone("keys", "set", "openai", env=environment(home), piped=KEY.encode())
    work.mkdir()
    (work / "there").symlink_to(home)
    quoted = json.dumps({"said": KEY}), b64encode(KEY.encode()).decode(), f"x{KEY[:15]}", f"{KEY}{KEY}"
    (work / "log.txt").write_text("\n".join((KEY, *quoted)))
    closed, shown = [*looks(str(home), around), *looks("there", around)], shows("log.txt")
    model = Scripted(lines(*(assistant(each) for each in (*closed, *shown)), "done"))

    async def agree(_: Question) -> Answer:
        return Answer.ONCE

    async with Hone(home=home, folder=work, model=model, ask=agree, mode="full") as agent:
        await agent.run("look")
    sent = [node.encoded for node in model.calls[-1][1].nodes if node.message.result]
    (home / FILE).unlink()
    marks = (KEY[:12].encode(), b64encode(KEY.encode())[:12])
    seen = [data for data in (*sent, everything(home)) if any(mark in data for mark in marks)]
    seen += [data for data in sent[: len(closed)] if b"redacted" in data or b"created" in data]
    figures.tally(len(sent), got_in=len(seen), lost=0, note="looks at a stored key, by tools and commands")
    assert (len(sent), seen) == (len(closed) + len(shown), [])
    assert all(b"[redacted: key]" in data for data in sent[len(closed) :])


def looks(home: str, around: Path) -> list[ToolCall]:
    """Ways to read the file itself."""
    path = os.path.join(home, FILE)
    return [
        call("read_file", path=path),
        call("search_files", pattern="value", path=home),
        call("search_files", pattern="Heron", path=str(around)),
        call("terminal", command=f"cat {path}"),
        call("terminal", command=f"grep -rs Heron {around} ; true"),
        call("terminal", command="env"),
    ]


def shows(path: str) -> list[ToolCall]:
    """Ways to come across the same text elsewhere."""
    return [
        call("read_file", path=path),
        call("read_file", path=path, offset=1, limit=1),
        call("search_files", pattern="said", path=path),
        call("terminal", command=f"cat {path}"),
    ]
