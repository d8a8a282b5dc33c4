"""L6: text from elsewhere that a conversation saved in a trusted folder stays foreign in every later one."""

import base64
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from hone.core.trust import Trust
from tests.conftest import Figures, Tier
from tests.laundering import IDENTITY, Place, Talk, place
from tests.story.poison.house import TEXTS
from tests.story.poison.injected import Injected

FILE = "notes/found.md"
GIT = shlex.join(["git", *IDENTITY])
Write = Callable[[Talk, str], Awaitable[None]]
Read = Callable[[Talk, str], Awaitable[tuple[str, Trust]]]


async def write_file(talk: Talk, text: str) -> None:
    await talk.call("write_file", path=FILE, content=text)


async def patch(talk: Talk, text: str) -> None:
    await talk.terminal(f"mkdir -p notes; printf 'To be done.\\n' > {FILE}")
    await talk.call("patch", path=FILE, find="To be done.", replace=text)


async def echo(talk: Talk, text: str) -> None:
    await talk.terminal(f"mkdir -p notes; printf '%s\\n' {shlex.quote(text)} > {FILE}")


async def append(talk: Talk, text: str) -> None:
    """To a file of the owner's."""
    more = f"printf '%s\\n' {shlex.quote(text)} >> README.md"
    await talk.terminal(f"mkdir -p notes; {more}; cp README.md {FILE}")


async def copy(talk: Talk, text: str) -> None:
    quoted = shlex.quote(text)
    await talk.terminal(f'mkdir -p notes; printf %s {quoted} > "$TMPDIR/x"; cp "$TMPDIR/x" {FILE}')


async def move(talk: Talk, text: str) -> None:
    await talk.terminal(f"mkdir -p new; printf %s {shlex.quote(text)} > new/found.md")
    await talk.terminal("rm -rf notes; mv new notes")


async def python(talk: Talk, text: str) -> None:
    code = f"import os; os.makedirs('notes', exist_ok=True); open({FILE!r}, 'w').write({text!r})"
    await talk.terminal(f"python3 -c {shlex.quote(code)}")


async def decode(talk: Talk, text: str) -> None:
    """The words of the command do not tell what it writes."""
    data = base64.b64encode(text.encode("utf-8", "surrogatepass")).decode()
    await talk.terminal(f"mkdir -p notes; echo {data} | base64 -d > {FILE}")


async def execute_code(talk: Talk, text: str) -> None:
    code = f"import os\nos.makedirs('notes', exist_ok=True)\nopen({FILE!r}, 'w').write({text!r})"
    await talk.call("execute_code", code=code)


async def background(talk: Talk, text: str) -> None:
    started = await talk.terminal(
        f"mkdir -p notes; printf '%s\\n' {shlex.quote(text)} > {FILE}", background=True
    )
    await talk.shell.jobs[started.text.rstrip(".").split()[-1]].running.wait()


async def link(talk: Talk, text: str) -> None:
    """Through another name, which is gone afterwards."""
    await talk.terminal(
        f"ln README.md .git/other; printf '%s\\n' {shlex.quote(text)} >> .git/other; rm .git/other"
    )


async def git_checkout(talk: Talk, text: str) -> None:
    await write_file(talk, text)
    await talk.terminal(
        f"{GIT} checkout -qb side && {GIT} add -f notes && {GIT} commit -qm side && {GIT} checkout -q main"
    )
    await talk.terminal(f"{GIT} checkout side -- notes")


async def git_apply(talk: Talk, text: str) -> None:
    lines = text.split("\n")
    difference = [f"--- /dev/null\n+++ b/{FILE}\n@@ -0,0 +1,{len(lines)} @@", *(f"+{each}" for each in lines)]
    data = base64.b64encode("\n".join([*difference, ""]).encode()).decode()
    await talk.terminal(f"echo {data} | base64 -d | {GIT} apply --whitespace=nowarn -")


async def git_stash(talk: Talk, text: str) -> None:
    await write_file(talk, text)
    await talk.terminal(f"{GIT} add -f notes && {GIT} stash -q")


WRITES: tuple[Write, ...] = (
    *(write_file, patch, echo, append, copy, move, python, decode, execute_code, background, link),
    *(git_checkout, git_apply, git_stash),
)


async def whole(talk: Talk, path: str) -> tuple[str, Trust]:
    outcome = await talk.call("read_file", path=path)
    return outcome.text, outcome.trust


async def search(talk: Talk, path: str) -> tuple[str, Trust]:
    outcome = await talk.call("search_files", pattern=r"\S", path=path, limit=500)
    return outcome.text, outcome.trust


def command(line: str) -> Read:
    async def read(talk: Talk, path: str) -> tuple[str, Trust]:
        outcome = await talk.terminal(line.format(path=path))
        return outcome.text, outcome.trust

    return read


async def printed(talk: Talk, path: str) -> tuple[str, Trust]:
    outcome = await talk.call("execute_code", code=f"import json\njson.dumps(open({path!r}).read())")
    return outcome.text, outcome.trust


READS: Mapping[str, Read] = {
    "read_file": whole,
    "search_files": search,
    "cat": command("cat {path}"),
    "cat -n": command("cat -n {path}"),
    "grep": command("grep -rn '' $(dirname {path})/*.md"),
    "python": command("""python3 -c "print(repr(open('{path}').read()))" """),
    "copy": command("cp {path} elsewhere.txt && head -c 20000 elsewhere.txt"),
    "commit": command(
        f"{GIT} add -f {{path}} && {GIT} commit -qm x; {GIT} --no-pager show; {GIT} --no-pager log -p -2"
    ),
    "execute_code": printed,
}


NAMES = [*READS]


async def saved(where: Place, way: Write, text: Injected) -> None:
    async with where.talk(foreign=True) as talk:
        await way(talk, text.text)


async def read_later(where: Place, way: Write, ways: Iterable[str]) -> list[str]:
    """The ways of reading by which the text comes as local."""
    path = "README.md" if way is link else FILE
    local = []
    if way is git_stash:
        async with where.later() as talk:
            _, trust = await command(f"{GIT} --no-pager stash show -p")(talk, path)
            local += ["stash show"] if trust is not Trust.FOREIGN else []
            await talk.terminal(f"{GIT} stash pop -q")
    for name in ways:
        async with where.later() as talk:
            text, trust = await READS[name](talk, path)
            assert "No such file" not in text, text
        local += [name] if trust is not Trust.FOREIGN else []
    return local


@pytest.mark.timeout(7_200)
async def test_what_a_foreign_conversation_saved_is_foreign_in_every_later_one(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    """Each text is saved in every way and read in a few; each way of reading has its turn."""
    tried, got_in = 0, []
    for draw in tier.draws(short=len(WRITES), full=len(TEXTS) * len(WRITES)):
        number, way = draw.index // len(WRITES), WRITES[draw.index % len(WRITES)]
        text = TEXTS[number if tier.long else draw.random.randrange(len(TEXTS))]
        ways = [
            NAMES[(draw.index + number + each) % len(NAMES)] for each in ((0, 3, 6) if tier.long else (0, 4))
        ]
        async with place(home / str(draw.index), tmp_path / str(draw.index)) as where:
            await saved(where, way, text)
            local = await read_later(where, way, ways)
        tried += len(ways)
        got_in += [f"{text.number} by {way.__name__}, {each}" for each in local]
    note = f"{len(WRITES)} ways of writing, {len(READS)} of reading"
    figures.tally(tried, got_in=len(got_in), note=note)
    assert got_in == []


@asynccontextmanager
async def server(body: bytes) -> AsyncIterator[int]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as http:
        Thread(target=http.serve_forever, daemon=True).start()
        try:
            yield http.server_port
        finally:
            http.shutdown()


async def test_what_a_command_with_network_saved_is_foreign_though_the_conversation_was_not(
    home: Path, tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    tried, got_in = 0, []
    for draw in tier.draws(short=1, full=len(TEXTS)):
        text = TEXTS[draw.random.randrange(len(TEXTS)) if not tier.long else draw.index]
        get = "import os,sys,urllib.request as w; os.makedirs('notes', exist_ok=True); "
        get += f"open('{FILE}', 'wb').write(w.urlopen(sys.argv[1]).read())"
        async with (
            place(home / str(draw.index), tmp_path / str(draw.index)) as where,
            server(text.text.encode("utf-8", "surrogatepass")) as port,
        ):
            async with where.talk() as talk:
                line = shlex.join(["python3", "-c", get, f"http://127.0.0.1:{port}/"])
                await talk.terminal(line, network=True)
            local = await read_later(where, write_file, NAMES)
        tried += len(NAMES)
        got_in += [f"{text.number}, {each}" for each in local]
    figures.tally(tried, got_in=len(got_in), note="a page saved by a command with network")
    assert got_in == []


async def test_the_same_text_is_local_if_the_owner_saved_it(home: Path, tmp_path: Path, tier: Tier) -> None:
    """The control: it is the record that makes it foreign."""
    text = TEXTS[tier.random().randrange(len(TEXTS))]
    async with place(home, tmp_path) as where:
        (tmp_path / "notes").mkdir()
        (tmp_path / FILE).write_text(text.text, "utf-8")
        assert await read_later(where, write_file, NAMES) == NAMES
