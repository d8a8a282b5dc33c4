"""Everything that can be typed in the chat, in one sitting, on a small and on a large screen."""

import asyncio
import json
import re
from base64 import b64encode
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from hone.core.messages import assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, echo, rounds, rules
from tests.cli.driving import CTRL_C, DOWN, ENTER, ESCAPE, TAB, Terminal, environment, terminal
from tests.conftest import Tier
from tests.core.test_images import FILES
from tests.golden import assert_golden

SCREENS = Path(__file__).with_name("screens")
PLUGIN = """\
import asyncio
from pathlib import Path
from hone import Part, tool

@tool(effects=set())
async def wait_for_rain() -> str:
    '''Wait for rain.'''
    while not Path("rain").exists():
        await asyncio.sleep(0.01)
    return "It rains."

class Extra(Part):
    def tools(self, folder, source=None):
        return [wait_for_rain]

def register(hone):
    return Extra()
"""
EDITOR = "#!/bin/sh\nprintf ' from the editor' >> \"$1\"\n"
SCRIPT = rules(
    ("hurry", rounds("Hurried.")),
    ("rain", rounds(assistant("Waiting.", call("wait_for_rain")), "It rained.")),
    (
        "change the list",
        rounds(assistant(call("write_file", path="list.txt", content="one\n2\nthree\n")), "Changed."),
    ),
    (
        "shorten the list",
        rounds(assistant(call("patch", path="list.txt", find="2\nthree\n", replace="2\n")), "Shortened."),
    ),
    ("count", rounds(assistant(call("terminal", command="seq 1 20")), "Counted.")),
    otherwise=echo,
)
QUESTION, PICKER = "[r] no, and say why", "↑ ↓ and Enter choose"
"""The last words of each."""
SIZES = [(80, 24), (120, 40)]


class Sitting:
    """Somebody at a terminal, and what they saw, step by step."""

    def __init__(self, user: Terminal, folder: Path, stage: FakeProvider) -> None:
        self.user, self.folder, self.stage = user, folder, stage
        self.screens: list[tuple[str, str]] = []

    async def enter(self, line: str, *seen: str, screen: bool = True) -> str:
        """Enter a line, wait for these words and for the prompt, and note the screen."""
        await self.user.enter(line)
        await self.user.sees(*seen)
        await self.user.prompt()
        if screen:
            self.screens.append((line, self.user.said))
        return self.user.said

    async def look(self, title: str, *seen: str) -> None:
        """Note the whole screen, once these words stand on it, with the status line below a prompt."""
        for words in seen:
            await self.user.until(partial(self._shows, words), repr(words))
        if QUESTION in seen:
            await self.user.until(lambda: not self.user.rows[self.user.row], "the row below")
        if self.user.is_waiting:
            await self.user.until(lambda: self.user.screen.rstrip()[-1] != ">", "the status line")
        self.screens.append((f"{title} (the whole screen)", self.user.screen))

    def _shows(self, words: str) -> bool:
        return words in self.user.screen

    @property
    def asked(self) -> list[dict[str, str]]:
        """The messages of the last request."""
        found: list[dict[str, str]] = json.loads(self.stage.bodies[-1])["messages"]
        return found


async def read_things(at: Sitting) -> None:
    """What a newcomer looks at before the first message."""
    await at.enter("/help", "/quit", "Ctrl-G")
    await at.enter("/context", "system prompt", "tools", "free", screen=False)
    await at.look("/context, empty")
    await at.enter("/cost", "Nothing has been spent in this conversation yet.")
    await at.enter("/retry", "You have not said anything in this conversation yet.")
    await at.enter("/copy", "There is no answer to copy yet.")
    await at.enter("/diff", "No tool or command has changed a file in this session.")
    await at.enter("/permissions", "No rule is stored.")
    await at.enter("/mode", "* auto")
    await at.enter("/nwe", "There is no command /nwe. Did you mean /new")
    await at.enter("/doctor", "✓ model: openai/scripted", screen=False)
    at.screens.append(("/doctor", at.user.said.partition("\n✓ sandbox")[0]))  # the rest is the machine's


async def attach(at: Sitting) -> None:
    """A file and a command's output go with a message, and neither is the owner's."""
    await at.enter("read @notes.txt, please", "with file notes.txt, 14 characters, as local text")
    attached = "\n\n<hone-attachment>\n# file notes.txt, label: local\nbuy nails\nnow!\n</hone-attachment>"
    assert at.asked[-1]["content"] == f"read @notes.txt, please{attached}"
    await at.enter("what is on @photo.jpg?", "with photo.jpg (metadata removed)")
    await at.user.write("see @n")
    await at.user.sees("   notes.txt")
    await at.user.until(lambda: "unknown" in at.user.screen.rstrip().rpartition("\n")[2], "the row below")
    at.screens.append(("@ offers files", at.user.news))
    at.user.type(TAB)
    await at.user.sees("> see @notes.txt")
    at.user.type(CTRL_C)
    await at.user.enter("!echo one; echo two >&2; exit 3")
    await at.user.sees("one\ntwo\nexit code 3", "Add this output to the conversation?")
    at.user.type("y")
    await at.user.sees("→ yes")
    await at.user.prompt()
    at.screens.append(("!echo", at.user.said))
    await at.enter("what was that?", "A scripted model heard: what was that?", screen=False)
    assert at.asked[-1]["content"].endswith(
        "# output of the user's command echo one; echo two >&2; exit 3, label: foreign\n"
        "one\ntwo\n\n(exit code 3)\n</hone-attachment>"
    )
    await at.user.enter("!true")
    await at.user.sees("exit code 0")
    await at.user.enter("!echo begun; exec sleep 60")
    await at.user.sees("\nbegun")
    at.user.type(CTRL_C)
    await at.user.sees("exit code 130", "[n] no (default)")
    at.user.type("n")
    await at.user.sees("→ no")


async def change(at: Sitting) -> None:
    """What tools did can be seen, and long results are folded."""
    await at.enter("change the list", "Changed.", screen=False)
    await at.enter("/diff", "-two", "+2")
    await at.enter("count", "… 16 more lines · /output shows them", screen=False)
    await at.enter("/output", "\n20\n")
    await at.enter("/output 9", "There are only 2 results.")
    await at.enter("/verbose", "Results are shown in full.")
    await at.enter("/verbose", "Long results are folded.")
    await at.enter("/copy", "Sent 8 characters to your terminal's clipboard (OSC 52).")
    assert b"\x1b]52;c;" + b64encode(b"Counted.") + b"\x07" in at.user.data
    await at.enter("/export talk.md", "Wrote ", screen=False)
    assert "Counted." in (at.folder / "talk.md").read_text()
    await at.enter("/export talk.md", "already", screen=False)  # the path may wrap the line anywhere
    await at.enter("/cost", "7 calls · ", screen=False)
    await at.enter("/context", "tool results", "The provider counted", screen=False)
    await at.look("/context")


async def know(at: Sitting) -> None:
    await at.enter("/remember", "What should I remember?")
    await at.enter("/remember Tests run with make check.", "Undo it with: /undo 1")
    await at.enter("/memory", "- Tests run with make check.")
    await at.enter("what now?", "what now?", screen=False)
    assert "Tests run with make check." in at.asked[-1]["content"], "it counts at once"
    await at.enter("/undo 1", "Change 1 is undone by change 2.", screen=False)
    await at.enter("/undo", "Which change? Give its number, as in: /undo 12. /log lists them.")
    await at.enter("/log", "Tests run with make check.")
    await at.enter("/pending", "No lesson waits for your approval.")
    await at.enter("/reviews", "There has been no review yet.")
    await at.enter("/skills", "code-review")


async def approve(at: Sitting) -> None:
    """A question has one option a line; what was allowed for good can be seen and taken back."""
    await at.enter("/mode ask", "Mode ask")
    await at.user.enter("count once more")
    await at.user.sees(
        "Run this command in ",
        "\n    seq 1 20\n",
        "  [a] always: terminal: seq 1 20\n",
        "  [r] no, and say why",
    )
    await at.look("a question about a command", QUESTION)
    at.user.type("a")
    await at.user.sees("→ always", "Counted.")
    await at.user.prompt()
    await at.user.enter("shorten the list")
    await at.look("a question about a file", "-three", QUESTION)
    at.user.type("y")
    await at.user.sees("→ yes", "Shortened.")
    await at.enter("/permissions", "terminal: seq 1 20")
    await at.enter("/permissions remove 2", "There is no rule 2.")
    await at.enter("/permissions remove 1", "Removed: allow terminal: seq 1 20.")
    await at.enter("/permissions", "No rule is stored.", screen=False)
    await at.enter("/mode auto", "Mode auto", screen=False)


async def steer(at: Sitting) -> None:
    """What is typed during a turn reaches the model at its next step; Esc stops."""
    await at.user.enter("wait for rain")
    await at.user.sees("wait_for_rain · 0.")
    at.user.type("and hurre\x7fy")
    await at.user.sees("> and hurry▏")
    at.user.type(ENTER)
    await at.user.sees("↳ and hurry")
    at.user.type("and more")
    await at.look("steering", "↳ and hurry", "and more▏")
    at.user.type(b"\x15")
    (at.folder / "rain").write_text("")
    await at.user.sees("It rains", "\n\n> and hurry\n", "Hurried.")
    await at.user.prompt()
    said = [each["role"] for each in at.asked[-4:]]
    assert (said, at.asked[-1]["content"]) == (["user", "assistant", "tool", "user"], "and hurry")
    (at.folder / "rain").unlink()
    await at.user.enter("rain again")
    await at.user.sees("wait_for_rain · 0.")
    at.user.type("then this")
    at.user.type(ENTER)
    await at.user.sees("↳ then this")
    at.user.type("/cost\r")
    await at.user.sees("↳ /cost")
    at.user.type("and @notes.txt\r")
    await at.user.sees("↳ and @notes.txt")
    at.user.type(ESCAPE)
    await at.user.sees(
        "Stopped. What was said so far is kept.", "> /cost\n", "> and @notes.txt\nwith file notes.txt"
    )
    await at.user.sees("A scripted model heard: and @notes.txt", "> then this")
    at.user.type(CTRL_C)


async def go_back(at: Sitting) -> None:
    """A message can be repeated, changed, and taken back with what followed from it."""
    await at.enter("first try", "A scripted model heard: first try", screen=False)
    await at.enter("/retry", "> first try\n\nA scripted model heard: first try", screen=False)
    assert [each["content"] for each in at.asked if each["content"] == "first try"] == ["first try"]
    await at.user.enter("/edit")
    await at.user.sees("Change your message, then press Enter.", "> first try")
    at.user.type("\x7f\x7f\x7fstep\r")
    await at.user.sees("A scripted model heard: first step")
    await at.user.prompt()
    assert "first try" not in [each["content"] for each in at.asked]
    at.user.type(ESCAPE + ESCAPE)
    await at.user.sees("? Go back to before which message?", "> 20", "first step")
    await at.look("Esc Esc", PICKER)
    at.user.type("the list")
    await at.user.sees("shorten the list  (1 file changed)\n", "change the list  (1 file changed)\n  ↑ ↓")
    at.user.type(DOWN)
    await at.user.until(lambda: re.search("> .*change the list", at.user.news) is not None, "the mark")
    at.user.type(ENTER)
    await at.user.sees("  restore       list.txt", "> the conversation and the files")
    await at.look("what to take back", "> the conversation and", PICKER)
    at.user.type(ENTER)
    await at.user.sees("Rewound 1 file", "The old conversation is kept:", "> change the list")
    assert (at.folder / "list.txt").read_text() == "one\ntwo\nthree\n"
    at.user.type(CTRL_C)


async def write(at: Sitting) -> None:
    """An editor for long messages, and what was typed before."""
    for keys in (b"\x07", b"\x18\x05"):
        await at.user.write("words")
        at.user.type(keys)
        await at.user.sees("> words from the editor")
        at.user.type(ENTER)
        await at.user.sees("A scripted model heard: words from the editor")
    await at.user.prompt()
    at.user.type(b"\x12")
    at.user.type("t was th")
    await at.user.sees("what was that?")
    await at.look("Ctrl-R", "I-search backward: t was th", "· auto mode")
    at.user.type(ENTER)
    at.user.type(ENTER)
    await at.user.sees("A scripted model heard: what was that?")


async def type_ahead(at: Sitting) -> None:
    """A line entered during an answer is the next message; what is not entered waits in the prompt."""
    pieces, finish = count(), asyncio.Event()

    async def hold_back(_: float) -> None:
        if next(pieces) > 2:
            await finish.wait()

    at.stage.pace, at.stage.sleep = 1.0, hold_back
    await at.user.enter("speak slowly")
    await at.user.sees("A scripted")
    at.user.type("typed ahead\r")
    await at.user.sees("↳ typed ahead")
    at.user.type("\x1b[200~pasted\rin two lines\x1b[201~")
    await at.look("type-ahead", "↳ typed ahead", "> pasted\n  in two lines▏")
    at.stage.pace = 0.0
    finish.set()
    await at.user.sees("speak slowly", "\n\n> typed ahead", "A scripted model heard: typed ahead")
    await at.look("what was not entered", "> pasted\n  in two lines", "· auto mode")
    at.user.type(ENTER)
    await at.user.sees("A scripted model heard: pasted")
    await at.user.prompt()
    said = [each["content"] for each in at.asked if each["role"] == "user"][-3:]
    assert said == ["speak slowly", "typed ahead", "pasted\nin two lines"]


async def leave(at: Sitting) -> None:
    await at.user.enter("/model")
    await at.user.sees("? Which model?", "> openai/scripted", "anthropic/")
    await at.look("/model", PICKER)
    at.user.type("nosuchmodel")
    await at.user.sees("(nothing matches)")
    at.user.type(ESCAPE)
    await at.user.sees("Which model? → nothing")
    await at.enter("/model anthropic/scripted", "This conversation now uses anthropic/scripted")
    await at.enter("/new", "A new conversation begins. The last one is kept: /resume", screen=False)
    await at.enter("/new", "This conversation is already new.")
    await at.enter("/sessions", "anthropic/scripted", screen=False)
    await at.enter("/resume no such words", "No conversation matches", screen=False)
    await at.enter("hello", "A scripted model heard: hello", screen=False)
    await at.user.enter("/resume")
    await at.user.sees("? Which conversation?", "read @notes.txt, please")
    await at.look("/resume", PICKER)
    at.user.type(ENTER)
    await at.user.sees("Continuing ")
    await at.user.enter("/clear")
    await at.user.until(lambda: at.user.rows[0].startswith("A new conversation begins."), "an empty screen")
    assert at.user.data.count(b"\x1b[H\x1b[2J\x1b[3J") == 1
    await at.user.enter("/quit")
    assert await at.user.ended() == 0


@pytest.fixture
def owner() -> Iterator[Path]:
    """The owner's folder. Its name has the same length on every machine, so that lines break alike."""
    with TemporaryDirectory(prefix="hone-", dir="/tmp") as folder:
        yield Path(folder)


@pytest.mark.parametrize(("columns", "rows"), SIZES)
async def test_every_command_and_key_does_what_the_help_says(
    owner: Path, tier: Tier, columns: int, rows: int
) -> None:
    if (columns, rows) not in SIZES[: tier.size(short=1, full=len(SIZES))]:
        pytest.skip("the larger screen belongs to the long tier")
    folder, home = owner / "shop", owner / ".hone"
    folder.mkdir()
    home.mkdir(mode=0o700)
    (folder / "notes.txt").write_text("buy nails\nnow!")
    (folder / "photo.jpg").write_bytes(FILES["photo.jpg"])
    (folder / "list.txt").write_text("one\ntwo\nthree\n")
    (owner / "waiting.py").write_text(PLUGIN)
    (home / "hone.toml").write_text('plugins = ["waiting:register"]\n')
    editor = owner / "editor.sh"
    editor.write_text(EDITOR)
    editor.chmod(0o755)
    async with FakeProvider(SCRIPT) as stage:
        env = environment(
            home, stage, HOME=str(owner), PYTHONPATH=str(owner), VISUAL=str(editor), SHELL="/bin/sh"
        )
        async with terminal(env=env, folder=folder, size=(columns, rows)) as user:
            at = Sitting(user, folder, stage)
            await user.prompt()
            at.screens.append(("start", "\n".join(user.rows[: user.row])))
            for part in (
                read_things,
                attach,
                change,
                know,
                approve,
                steer,
                go_back,
                write,
                type_ahead,
                leave,
            ):
                await part(at)
        assert stage.invalid == []
    assert all(len(row) <= columns for row in user.rows)
    seen = "".join(f"=== {title}\n{_steady(screen)}\n" for title, screen in at.screens)
    assert_golden(SCREENS / f"chat-{columns}x{rows}.txt", seen)


async def test_a_terminal_that_cannot_draw_hears_a_line_while_the_agent_works(owner: Path) -> None:
    home = owner / ".hone"
    home.mkdir(mode=0o700)
    (owner / "waiting.py").write_text(PLUGIN)
    (home / "hone.toml").write_text('plugins = ["waiting:register"]\n')
    async with FakeProvider(SCRIPT) as stage:
        env = environment(home, stage, PYTHONPATH=str(owner), TERM="dumb")
        async with terminal(env=env, folder=owner) as user:
            await user.enter("wait for rain")
            await user.sees("wait_for_rain")
            user.type("and hurry\n")
            await user.sees("↳ and hurry")
            user.type("/cost\n")
            await user.sees("↳ /cost")
            (owner / "rain").write_text("")
            await user.sees("> and hurry\n", "Hurried.", "> /cost\n", "tokens in")
            assert await user.leave() == 0
        last = json.loads(stage.bodies[-1])["messages"]
        assert [each["role"] for each in last[-4:]] == ["user", "assistant", "tool", "user"]
    assert b"\x1b" not in user.data


def _steady(screen: str) -> str:
    """Without what is different each time: ids, times and sizes."""
    for pattern, instead in (
        (r"/tmp/hone-\w{8}\b", "/home/ada-lovelace"),
        (r"\b[0-9a-f]{10}\b", "0123456789"),
        (r"\d{4}-\d\d-\d\d( \d\d:\d\d)?", "2026-01-01"),
        (r"\d+\.\d s", "0.1 s"),
        (r"[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] ", "⠋ "),
        (r"\d+% of context", "1% of context"),
        (r"review at \d\d:\d\d", "review at 12:00"),
        (r"provider counted [\d,]+", "provider counted 1,000"),
        (r"[\d,]+ tokens in( \(\d+% cached\))? · [\d,]+ out", "1,000 tokens in · 10 out"),
    ):
        screen = re.sub(pattern, instead, screen)
    return re.sub(r"(?m)^[a-z ]+ [\d,]+ +[\d.]+%", lambda row: re.sub(r"\d", "9", row[0]), screen)
