"""The channels by which a text comes back: an earlier conversation met it, and a later one is given it."""

from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from hone.core.ids import SessionId
from hone.core.messages import ToolCall
from hone.core.recall import said
from hone.core.transcript import Node
from hone.core.trust import Trust
from hone.core.value import replace
from hone.core.visible import path_to_text
from hone.features.backends.labels import TRUST
from hone.features.backends.part import MemoryPart
from hone.features.imports.conversation import typed
from hone.features.imports.plan import bring, survey
from hone.features.imports.sources import SOURCES, source_files
from hone.features.mcp.server.clients import Client
from hone.features.mcp.server.sending import LearnArguments, SaidMessage, learn
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions
from hone.models.scripted import call
from hone.runtime.session import Session
from hone.settings import Settings
from hone.settings.sections import McpClientSettings
from tests.doubles import odd
from tests.features import others
from tests.story.poison.house import LENGTHY, SETTINGS, Channel, House
from tests.story.poison.injected import ENCODINGS, PUBLIC, Injected
from tests.story.poison.obedient import BREWING, GO_ON


class Searched(Channel):
    """An earlier conversation is found by words of the text, or read around it."""

    name = "session_search"
    clipped = True

    async def open(self, place: House, text: Injected) -> Session:
        self._earlier = (await place.talk(place.source(text))).id
        return await place.hone.session()

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        by_words = text.number % 2 and text.family not in {PUBLIC, "html", *ENCODINGS}
        if by_words:
            return (call("session_search", query=text.canary),)
        return (call("session_search", session=self._earlier, at=3),)


class Digested(Searched):
    """What is found is a review that read the earlier conversation as a digest."""

    name = "session_search of a review"

    async def open(self, place: House, text: Injected) -> Session:
        earlier = await place.talk(place.source(text))
        await earlier.send(f"{GO_ON}{LENGTHY}")
        self._earlier = (await place.review(earlier.id, late=True)).header.id
        return await place.hone.session()

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return (call("session_search", session=self._earlier),)


class Seeded(Channel):
    """A template is made from the earlier conversation. Of a foreign result it keeps that there was one; of a
    call that was made after it, the beginning of its arguments."""

    name = "session template"

    async def open(self, place: House, text: Injected) -> Session:
        saved = [call("write_file", path="notes.txt", content=text.text)] if text.number % 2 else []
        earlier = await place.talk(place.source(text), *saved)
        options = TemplateOptions(name=f"t{text.number}")
        await place.hone.part(TemplatesPart).create(earlier.id, options)
        return await place.hone.session(template=options.name)

    async def hold(self, place: House, text: Injected, *, at_once: bool) -> SessionId:
        id = await super().hold(place, text, at_once=at_once)
        nodes = (await place.hone.sessions.load(id)).transcript.nodes
        examples = [node.message for node in nodes if node.message.template]
        results = [message.result.text for message in examples if message.result]
        calls = [made.arguments for message in examples for made in message.calls]
        assert any(place.marked(each, [text]) for each in results) is place.honest
        assert text.number % 2 or not any(place.marked(each, [text]) for each in calls)
        return id

    def find(self, place: House, text: Injected, content: str) -> None:
        """`hold` has looked."""


class Stored(Channel):
    """The earlier conversation puts it into a memory backend, from which a later one gets it."""

    name = "memory_backend"

    def settings(self, honest: bool) -> Settings:
        return replace(SETTINGS, memory=replace(SETTINGS.memory, backend="sqlite", owner="ann"))

    async def open(self, place: House, text: Injected) -> Session:
        value = f"{place.mind.owner.said}\n{text.text}"
        await place.talk(
            place.source(text), call("memory_backend", action="store", key=_key(text), value=value)
        )
        part = place.hone.part(MemoryPart)
        backend = await part.used()
        assert backend
        if not await backend.retrieve(part.backing.user_id, _key(text)):
            # It looks like a secret, and the tool refused it. Another program may have put it there.
            await backend.store(part.backing.user_id, _key(text), value)
        return await place.hone.session()

    async def hold(self, place: House, text: Injected, *, at_once: bool) -> SessionId:
        id = await super().hold(place, text, at_once=at_once)
        (first, *_) = (await place.hone.sessions.load(id)).transcript.nodes
        assert (first.message.reminder is not None) is place.honest
        return id

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return self._asks(text)

    def _asks(self, text: Injected) -> Sequence[ToolCall]:
        if text.number % 2:
            return (call("memory_backend", action="retrieve", key=_key(text)),)
        return (call("memory_backend", action="query", query=_key(text)),)


class AskedByReview(Stored):
    """The later conversation reads nothing; its review asks the backend."""

    name = "memory_backend in a review"

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return ()

    def looks(self, text: Injected) -> Sequence[ToolCall]:
        return self._asks(text)

    def number(self, heard: Sequence[Node]) -> int:
        return len(heard)

    def check(self, place: House, text: Injected, node: Node) -> None:
        if node.message.result:
            super().check(place, text, node)
        else:
            assert node.trust_floor > Trust.FOREIGN


class Reminded(Channel):
    """A service says of it that the owner stored it, and it is brought up beside the user's words."""

    name = "reminder from a memory service"
    clipped = True

    def settings(self, honest: bool) -> Settings:
        odd.current.is_cloud = not honest
        memory = replace(SETTINGS.memory, backend="odd", owner="ann")
        return replace(SETTINGS, memory=memory, plugins=("tests.doubles.odd:register",))

    async def open(self, place: House, text: Injected) -> Session:
        await odd.current.store("ann", "tips", text.text, {TRUST: "owner"})
        return await place.hone.session()

    def number(self, heard: Sequence[Node]) -> int:
        return 1

    def find(self, place: House, text: Injected, content: str) -> None:
        """`check` looks at what stands beside the words."""

    def check(self, place: House, text: Injected, node: Node) -> None:
        super().check(place, text, node)
        assert node.trust is Trust.OWNER
        assert node.message.reminder
        super().find(place, text, node.message.reminder.text)


class Imported(Channel):
    """A tool of another agent printed it, and that conversation was brought in: it is continued or read here,
    or reviewed as it is."""

    name = "import"
    clipped = cold = True

    async def open(self, place: House, text: Injected) -> Session:
        self._brought = await self._bring(place, text)
        if text.number // 4 % 2:
            return await place.hone.session()
        place.mind.result = self.number((await place.hone.sessions.load(self._brought)).transcript.nodes)
        return await place.hone.resume(self._brought)

    def steps(self, place: House, text: Injected) -> Sequence[ToolCall]:
        return (call("session_search", session=self._brought),) if text.number // 4 % 2 else ()

    async def hold(self, place: House, text: Injected, *, at_once: bool) -> SessionId:
        return await (super().hold(place, text, at_once=True) if at_once else self._bring(place, text))

    def number(self, heard: Sequence[Node]) -> int:
        return next((number for number, node in enumerate(heard, 1) if node.message.result), 2)

    def check(self, place: House, text: Injected, node: Node) -> None:
        assert (node.trust_floor is Trust.FOREIGN) is not place.honest
        self.find(place, text, said(node.message))

    async def _bring(self, place: House, text: Injected) -> SessionId:
        """In the control, no tool ran: the other agent says it by itself."""
        source = "openai" if place.honest else SOURCES[text.number % len(SOURCES)]
        talk = [("user", place.mind.owner.said), ("assistant", text.text)] if place.honest else []
        with patch.multiple(others, ASKED=place.mind.owner.said, OUTPUT=text.text):
            path = written(place.folder.parent / "others", source, f"talk-{text.number}", talk)
        store, ignored = place.hone.sessions, lambda _: None
        found = await survey(store, source, source_files(source, path), ignored, foreign=False)
        assert await bring(store, source, found, ignored, foreign=False) == (1, [])
        return next(iter(found.states))


class HandedOver(Imported):
    """Another agent hands the conversation over through MCP, and says that the owner said all of it."""

    name = "learn"

    async def _bring(self, place: House, text: Injected) -> SessionId:
        said = [SaidMessage("user", place.mind.owner.said), SaidMessage("user", text.text)]
        client = Client("attacker", path_to_text(place.folder), McpClientSettings(mode="ask"))
        told = await learn(place.hone, client, LearnArguments(said, conversation=f"talk {text.number}"))
        return SessionId(told.split()[3])

    def find(self, place: House, text: Injected, content: str) -> None:
        """What stands between the marks of other agents' programs is left out: nobody typed it."""
        if typed(text.text) == text.text:
            super().find(place, text, content)


class Compacted(Channel):
    """Notes stand for the conversation that met it, and the notes repeat it."""

    name = "compaction"

    async def hold(self, place: House, text: Injected, *, at_once: bool) -> SessionId:
        mind = place.mind
        session = await place.talk(call("skills_list"), call("skill_view", name=BREWING), place.source(text))
        await session.send(f"{GO_ON}: {'and so on ' * (200 + len(text.text) // 4)}")
        assert await session.compact()
        assert not any(node.message.result for node in session.transcript.nodes)
        mind.result, mind.steps, mind.at_once = 2, (), at_once
        if at_once:
            await session.send(mind.owner.said)
        return session.id

    def number(self, heard: Sequence[Node]) -> int:
        return 2


def _key(text: Injected) -> str:
    return f"tips/{text.canary}"


def written(folder: Path, source: str, name: str, talk: Sequence[tuple[str, str]] = ()) -> Path:
    """Write one conversation as the other agent does, and return its file. `talk` is what is said in it, if
    not what is said in all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    match source:
        case "hermes":
            path = folder / f"{name}.db"
            others.state(path, {name: {}}, others.stored(name))
        case "opencode":
            path = others.opencode(folder / f"{name}.db", name)
        case "openai":
            own = [{"role": role, "content": content} for role, content in talk]
            path.write_bytes(others.lines(own or others.openai()))
        case "codex":
            path.write_bytes(others.lines(others.codex(name)))
        case _:
            path.write_bytes(others.lines(others.claude(name)))
    return path
