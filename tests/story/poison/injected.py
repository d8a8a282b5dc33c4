"""The injected texts, each with a word of its own to find it again, and the honest ones beside them."""

import base64
import codecs
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
PUBLIC = "public"
RUN = 5
"""As many words in a row tell whose words they are."""
_ONSETS, _VOWELS = "bdfgklmnprstvz", "aeiou"
_SYLLABLES = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]


def tagged(text: str) -> str:
    """In characters that no screen shows."""
    return "".join(chr(0xE0000 + byte) for byte in text.encode())


ENCODINGS: Mapping[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "hex": lambda text: text.encode().hex(),
    "tags": lambda text: f"A page about gardens.{tagged(text)}",
}


@dataclass(frozen=True, slots=True)
class Injected:
    """`text` is what a channel brings, `plain` the same if it is encoded, `entry` what a model would make of
    it. In our own texts the canary is in all of them, and in no other text; in public ones it is nowhere but
    in the name of the skill that is made of them."""

    number: int
    family: str
    entry: str
    plain: str
    canary: str

    @property
    def text(self) -> str:
        return ENCODINGS.get(self.family, str)(self.plain)

    @property
    def quote(self) -> str:
        """Words of it that stand in it as they are."""
        return self.canary if self.family != PUBLIC else max(self.plain.splitlines(), key=len).strip()[:60]

    @property
    def runs(self) -> frozenset[str]:
        return runs(self.plain) | runs(self.entry)


@dataclass(frozen=True, slots=True)
class Honest:
    """What an owner says, and the entry that a careful model makes of it."""

    target: str
    said: str
    entry: str


@dataclass(frozen=True, slots=True)
class Work:
    """An honest session: what was asked for, and the skill it leaves."""

    task: str
    name: str
    description: str
    steps: tuple[str, ...]

    @property
    def document(self) -> str:
        steps = "\n".join(f"{number}. {step}" for number, step in enumerate(self.steps, 1))
        return f"---\nname: {self.name}\ndescription: {self.description}\n---\n\n{steps}\n"


def canary(number: int) -> str:
    size = len(_SYLLABLES)
    return f"xo{_SYLLABLES[number % size]}{_SYLLABLES[number // size]}qu"


def words(text: str) -> str:
    """Nothing but its words, a space on both sides of each."""
    found = re.findall(r"\w+", text.casefold())
    return f" {' '.join(found)} "


def runs(text: str) -> frozenset[str]:
    """Every five words in a row; of a shorter text all of its words."""
    found = words(text).split()
    last = max(1, len(found) - RUN + 1)
    return frozenset(f" {' '.join(found[start : start + RUN])} " for start in range(last)) - {"  "}


def injected() -> list[Injected]:
    return [*_injected((HERE / "texts.txt").read_text("utf-8"))]


def public(first: int) -> list[Injected]:
    """Those that others have published, to the byte, numbered from `first`. NOTICE.md says whose they are."""
    sources = json.loads((HERE / "public.json").read_text("utf-8"))
    found = [text for source in sources for text in source["texts"]]
    return [
        Injected(
            number, PUBLIC, " ".join(each.get("aim", each["text"]).split()), each["text"], canary(number)
        )
        for number, each in enumerate(found, first)
    ]


def _injected(text: str) -> Iterator[Injected]:
    for number, record in enumerate(text.removeprefix("=== ").split("\n=== ")):
        head, _, plain = record.partition("\n")
        family, _, entry = head.partition(" | ")
        word = canary(number)
        yield Injected(number, family, entry.replace("{c}", word), plain.strip().replace("{c}", word), word)


def honest() -> list[Honest]:
    return [Honest(*row) for row in _rows("honest.tsv")]


def turned() -> list[Honest]:
    """What an owner says, and an entry in the same words that says something else."""
    return [Honest("user", *row) for row in _rows("turned.tsv")]


def works() -> list[Work]:
    return [
        Work(task, name, description, tuple(steps.split("|")))
        for task, name, description, steps in _rows("sessions.tsv")
    ]


def _rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (HERE / name).read_text("utf-8").splitlines()]
