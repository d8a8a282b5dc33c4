"""The injected texts, each with a word of its own to find it again, and the honest ones beside them."""

import base64
import codecs
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
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
    it. The canary is in all of them and in no other text."""

    number: int
    family: str
    entry: str
    plain: str
    canary: str

    @property
    def text(self) -> str:
        return ENCODINGS.get(self.family, str)(self.plain)


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


def injected() -> list[Injected]:
    return [*_injected((HERE / "texts.txt").read_text("utf-8"))]


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
