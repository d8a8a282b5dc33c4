"""A scenario of the small files beside the database, on a home that is not there yet: keys, rules, trust,
results that are too long for a conversation."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from hone.core.clock import ManualClock
from hone.files.documents import FileDocuments
from hone.runtime.permissions.project import StoredRules
from hone.runtime.permissions.rules import parse_rule
from hone.runtime.trust import Folders
from hone.stores.keys import ProviderKeys
from hone.tools.wrappers import keep
from hone.web.api_keys import ApiKeys, KeyKind
from hone.web.keys import FILE, stored
from tests.faults.points.scenario import Deeds
from tests.given import NOON

LONG = "k" * 1_500


@dataclass(frozen=True)
class Lists:
    home: Path
    keys: ProviderKeys
    rules: StoredRules
    folders: Folders
    api: ApiKeys

    async def set(self, name: str, value: str) -> None:
        self.keys.set(name, value, NOON, in_file=True)

    async def allow(self, rule: str) -> None:
        self.rules.add("/srv", "allow", parse_rule(rule))

    async def trust(self, name: str) -> None:
        self.folders.trust(self.home.parent / name)

    async def decline(self, name: str) -> None:
        self.folders.decline(self.home.parent / name)

    async def issue(self, name: str) -> None:
        self.api.add(name, KeyKind.PROGRAM)

    async def remove(self, name: str) -> None:
        self.keys.remove(name)

    async def serve(self) -> None:
        stored(self.home)

    async def spill(self, text: str) -> None:
        keep(FileDocuments(self.home), "terminal", text)

    async def view(self) -> object:
        places = [self.home.parent / name for name in ("one", "two", "three")]
        answers = [(self.folders.is_answered(place), self.folders.trusts(place)) for place in places]
        server = (self.home / FILE).exists() and len(stored(self.home))
        rules = {folder: (each.allow, each.deny) for folder, each in self.rules.all().items()}
        issued = [key.name for key in self.api.list()]
        values = {name: self.keys.get(name) for name in self.keys.list()}
        spilled = sorted(each.read_text() for each in (self.home / "spill").glob("*.txt"))
        return values, rules, self.folders.all(), answers, issued, server, spilled


@asynccontextmanager
async def opened(root: Path) -> AsyncIterator[Lists]:
    home = root / "home"
    rules = StoredRules(FileDocuments(home))
    yield Lists(
        home, ProviderKeys(home), rules, Folders.of(FileDocuments(home)), ApiKeys(home, ManualClock())
    )


async def nothing(root: Path) -> None:
    return None


lists = Deeds(
    "lists",
    nothing,
    opened,
    (
        lambda it: it.set("OPENAI_API_KEY", LONG),
        lambda it: it.allow("terminal: make test"),
        lambda it: it.trust("one"),
        lambda it: it.set("ANTHROPIC_API_KEY", "short"),
        lambda it: it.serve(),
        lambda it: it.spill("a long result\n" * 700),
        lambda it: it.trust("two"),
        lambda it: it.decline("three"),
        lambda it: it.issue("script"),
        lambda it: it.allow("terminal: ls"),
        lambda it: it.set("OPENAI_API_KEY", "another"),
        lambda it: it.remove("ANTHROPIC_API_KEY"),
    ),
    Lists.view,
)
