"""A server with many users, and the questions that each of them asks about the others."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import httpx2
import msgspec
from click.testing import CliRunner

from hone.cli.crew import Crew
from hone.cli.options import Options
from hone.core.delivery import TicketKind, WorkItem
from hone.core.errors import HoneError
from hone.core.loading import import_object
from hone.core.messages import Message, Role, assistant
from hone.features.users.service import make_key
from hone.models.scripted import call
from hone.monitoring.families import render
from hone.monitoring.metrics import Metrics
from hone.registry import list_commands as name_commands
from hone.settings import Settings
from hone.settings.sections import Memory, ServeSettings
from hone.stores.postgres.user_admin import UserAdmin
from hone.web.app import operations
from hone.web.operation import Operation
from hone.web.tenants import find_workspaces
from tests.isolation.people import Person, settle
from tests.isolation.questions import Question, ask_route, list_calls, list_commands
from tests.web.rig import PATIENCE, Running, running

CALLS = "Do: "
"""Begins a message that tells the scripted model which tools to call."""
COMMANDS = name_commands()
ASIDE = {"POST /api/logout", "POST /api/backends/evaluate", "POST /api/tickets", "DELETE /api/logins/{login}"}
"""Asked separately, or not at all: they end the visit of the one who asks, or take long."""


def obey(messages: Sequence[Message]) -> Message:
    """Call the tools that the user names, all at once, then answer."""
    last = messages[-1]
    if last.role is Role.USER and last.text.startswith(CALLS):
        wanted = json.loads(last.text.removeprefix(CALLS))
        return assistant("", *(call(name, **arguments) for name, arguments in wanted))
    return assistant("Done.")


@dataclass
class Town:
    """People on one server. `seen` counts what was asked, `leaks` says what came out."""

    server: Running
    people: Sequence[Person]
    keys: dict[str, str]
    metrics: Metrics
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[int] = field(default_factory=Counter)
    leaks: list[str] = field(default_factory=list)

    @asynccontextmanager
    async def visit(self, person: Person) -> AsyncIterator[httpx2.AsyncClient]:
        headers = {"authorization": f"Bearer {self.keys[person.name]}"}
        async with httpx2.AsyncClient(base_url=self.server.url, headers=headers, timeout=PATIENCE) as client:
            yield client

    def check(self, kind: str, asker: str, text: str | bytes) -> None:
        """Note every secret that is not the asker's."""
        self.asked[kind] += 1
        found = text if isinstance(text, str) else text.decode("utf-8", "replace")
        for person in self.people:
            if person.name != asker and person.secret in found:
                at = found.index(person.secret)
                self.leaks.append(f"{kind}: {asker} saw {person.name}: …{found[max(0, at - 80) : at + 30]}…")

    def check_metrics(self) -> None:
        """What Prometheus reads names nobody and repeats no word of theirs."""
        text = render(self.metrics.collect())
        assert "hone_model_calls_total" in text
        self.check("metrics", "", text)
        self.leaks += [f"metrics: {each.word}" for each in self.people if each.word in text]

    def check_requests(self) -> None:
        """Every request to the model holds the secrets of one person at most. Those are forgotten then."""
        for request in self.server.stage.requests:
            body = request.body.decode("utf-8", "replace")
            whose = [person.name for person in self.people if person.secret in body]
            self.asked["model request"] += 1
            if len(whose) > 1:
                self.leaks.append(f"model request: of {whose}")
        self.server.stage.requests.clear()


def list_routes() -> list[Operation]:
    return [each for each in operations() if f"{each.method} {each.path}" not in ASIDE and not each.streams]


@asynccontextmanager
async def inhabited(tmp_path: Path, url: str, count: int) -> AsyncIterator[Town]:
    """People who have lived here for a while, with a note in each working folder."""
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    unlimited = ServeSettings(requests_per_minute=0, reviews=0)
    settings = Settings(database=url, memory=Memory(backend="postgres", url=url), serve=unlimited)
    people = [Person(f"user{number}") for number in range(count)]
    async with running(home, work, obey, settings=settings) as server:
        admin, keys, metrics = UserAdmin(url), {}, Metrics(server.state.clock)
        server.state.hone.monitors.add(metrics)
        for person in people:
            admin.add(person.name, {})
            keys[person.name] = make_key(admin, person.name, "first", "person", None)
            town = Town(server, people, keys, metrics)
            await remember(town, person)
            assert server.state.hone.stores.open_owner is not None
            folder = tmp_path / "settling" / person.name
            folder.mkdir(parents=True)
            await settle(server.state.hone.stores.open_owner(person.name, folder), person)
            workspace = find_workspaces(home, settings) / person.name
            (workspace / "note.txt").write_text(f"{person.word} {person.secret}\n")
        yield town


async def remember(town: Town, person: Person) -> None:
    """Store something of a person's in the memory backend, which all users share."""
    arguments = {"action": "store", "key": person.word, "value": f"{person.word} is {person.secret}"}
    said = f"{CALLS}{json.dumps([['memory_backend', arguments]])}"
    rule = {"rule": f"terminal: echo {person.secret}", "kind": "deny", "everywhere": True}
    async with town.visit(person) as client:
        allowed = await client.post("/api/permissions", json=rule)
        assert allowed.is_success, allowed.text
        response = await client.post(
            "/v1/chat/completions", json={"messages": [{"role": "user", "content": said}]}
        )
    assert response.status_code == 200, response.text


def draw_pairs(people: Sequence[Person], count: int, random: Random) -> Iterator[tuple[Person, Person]]:
    for _ in range(count):
        asker, about = random.sample(list(people), 2)
        yield asker, about


async def ask_routes(town: Town, count: int, random: Random) -> None:
    """Ask every route in turn, as somebody about somebody else."""
    routes = list_routes()
    groups: dict[str, list[tuple[Person, Question]]] = {}
    for number, (asker, about) in enumerate(draw_pairs(town.people, count, random)):
        question = ask_route(routes[number % len(routes)], about, random)
        groups.setdefault(asker.name, []).append((asker, question))
    for questions in groups.values():
        async with town.visit(questions[0][0]) as client:
            for asker, question in questions:
                response = await client.request(
                    question.method,
                    question.path,
                    params=question.query,
                    content=msgspec.json.encode(question.body)
                    if question.method not in ("GET", "HEAD")
                    else None,
                    headers={"content-type": "application/json"},
                )
                town.answered[response.status_code] += 1
                town.check(question.route, asker.name, f"{response.headers!r}{response.text}")


async def ask_tools(town: Town, count: int, random: Random, workspaces: Path) -> None:
    """Let the model of one person call every tool that could find something of another."""
    done = 0
    town.check_requests()
    for asker, about in draw_pairs(town.people, count, random):
        if done >= count:
            return
        wanted: list[Any] = [[name, arguments] for name, arguments in list_calls(about, str(workspaces))]
        async with town.visit(asker) as client:
            response = await client.post(
                "/v1/chat/completions",
                json={"messages": [{"role": "user", "content": f"{CALLS}{json.dumps(wanted)}"}]},
            )
        assert response.status_code == 200, response.text
        town.check("answer", asker.name, response.text)
        for request in town.server.stage.requests:
            for name, _ in wanted:
                town.check(f"tool {name}", asker.name, request.body)
        done += len(wanted)
        town.check_requests()


async def watch_others(town: Town, asker: Person, about: Person) -> None:
    """Listen to everything that one may listen to while another person talks."""
    async with town.visit(asker) as client, town.visit(about) as other:
        begun = await other.post("/api/sessions", json={"text": f"Hello, {about.secret}."})
        session = begun.json()["session"]
        heard: list[str] = []

        async def listen(path: str) -> None:
            async with client.stream("GET", path) as response:
                async for line in response.aiter_lines():
                    heard.append(line)  # noqa: PERF401  the stream is cut off

        paths = ("/api/events", f"/api/sessions/{session}/events", f"/api/sessions/{about.session}/events")
        tasks = [asyncio.create_task(listen(path)) for path in paths]
        for _ in range(3):
            said = await other.post(f"/api/sessions/{session}/messages", json={"text": about.secret})
            assert said.status_code in (202, 409), said.text
            await client.get("/api/sessions")
        while (await other.get(f"/api/sessions/{session}")).json()["busy"]:
            pass  # each look asks the server
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        town.check("events", asker.name, "\n".join(heard))


async def run_commands(town: Town, count: int, random: Random) -> None:
    """Run commands as the administrator, about everybody. They run in this process, so that the walls are as
    the test has them."""
    hone = town.server.state.hone
    environ = {"HONE_HOME": str(hone.home), "HONE_DATABASE": hone.settings.database, "HONE_LEARNING": "off"}
    done = 0
    for _, about in draw_pairs(town.people, count, random):
        for arguments in list_commands(about):
            result = await asyncio.to_thread(invoke, arguments, environ)
            town.check(f"hone {arguments[0]}", "", result)
            done += 1
            if done >= count:
                return


def invoke(arguments: Sequence[str], environ: dict[str, str]) -> str:
    """Run a command and return all it printed. About others it finds nothing, so its exit code may be any."""
    found = CliRunner().invoke(
        import_object(COMMANDS[arguments[0]][0]), arguments[1:], obj=Options(), env=environ
    )
    assert found.exception is None or isinstance(found.exception, HoneError | SystemExit), arguments
    return f"{found.output}{found.exception or ''}"


async def work_for_all(town: Town) -> None:
    """Do everybody's reviews, as a worker does that serves all owners."""
    hone = town.server.state.hone
    assert hone.stores.open_owner is not None
    said: list[str] = []
    async with Crew(hone, lambda _, line: said.append(line), lambda _: None) as crew:
        for person in town.people:
            stores = hone.stores.open_owner(person.name, hone.home)
            for job in await stores.jobs.waiting():
                before = len(said)
                await crew.perform(WorkItem(TicketKind.REVIEW, person.name, job.id))
                town.check("review", person.name, "\n".join(said[before:]))
                town.check_requests()
