"""The channels by which a text reaches a model: tools of the conversation in which it obeys."""

import shlex
import sys
from collections.abc import Sequence

from hone.core.messages import ToolCall
from hone.core.transcript import Node
from hone.models.scripted import call
from hone.runtime.session import Session
from tests.story.poison.house import HARMLESS, PAGE, SITE, Channel, House
from tests.story.poison.injected import Injected

GET = "import sys, urllib.request as web; sys.stdout.buffer.write(web.urlopen(sys.argv[1]).read())"
FOUND = ("AGENTS.md", "README.md")
"""What somebody else's folder greets an agent with."""


class Fetched(Channel):
    name = "web_fetch"

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return (place.source(text),)


class Terminal(Channel):
    name = "networked terminal"

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return (call("terminal", command=self._command(place, text), network=True),)

    def check(self, place: House, text: Injected, node: Node) -> None:
        super().check(place, text, node)
        assert place.owner.asked[-1].detail == self._command(place, text)

    def _command(self, place: House, text: Injected) -> str:
        return shlex.join([sys.executable, "-c", GET, f"http://127.0.0.1:{place.port}/{text.number}"])


class AfterNetwork(Channel):
    name = "read_file after a network effect"

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        (place.folder / PAGE).write_text(text.text, "utf-8")
        return (call("web_fetch", url=f"{SITE}/{HARMLESS}"), call("read_file", path=PAGE))


class Untrusted(Channel):
    name = "untrusted folder"
    trusted = False

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        for name in FOUND:
            (place.folder / name).write_text(text.text, "utf-8")
        return (call("read_file", path=FOUND[text.number % len(FOUND)]),)


class Saved(Channel):
    """A foreign conversation saves it in the trusted folder and a later one reads it, each in one of three
    ways."""

    name = "a file that an earlier conversation saved"

    async def open(self, place: House, text: Injected) -> Session:
        code = f"open('{PAGE}', 'w', encoding='utf-8').write({text.text!r})"
        ways = (
            call("write_file", path=PAGE, content=text.text),
            call("terminal", command=f"printf %s {shlex.quote(text.text)} > {PAGE}"),
            call("execute_code", code=code),
        )
        await place.talk(place.source(text), ways[text.number % len(ways)])
        return await place.hone.session()

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        ways = (
            call("read_file", path=PAGE),
            call("terminal", command=f"cat {PAGE}"),
            call("execute_code", code=f"print(open('{PAGE}', encoding='utf-8').read())"),
        )
        return (ways[text.number // 3 % len(ways)],)


FETCH, TERMINAL = Fetched(), Terminal()
