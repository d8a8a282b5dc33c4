"""Read the texts of the worlds: classes of task, rules, and what owners say in their languages."""

import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

FILE = Path(__file__).with_name("world.toml")
LANGUAGES = ("en", "de", "fr", "es")

Spoken = Mapping[str, str]
"""One sentence by language."""
Target = Literal["user", "memory", "project", "skill"]


class TaskClass(Struct, frozen=True, forbid_unknown_fields=True):
    """`files` are in the folder from the start; the agent reads `reads` and writes `path`."""

    name: str
    request: Spoken
    path: str
    files: Mapping[str, str] = {}
    reads: str = ""


class HiddenRule(Struct, frozen=True, forbid_unknown_fields=True):
    """The first value is a model's default. `other` says the same in other words."""

    name: str
    task: str
    values: tuple[str, ...]
    said: Spoken
    other: str
    target: Target = "memory"


class Frames(Struct, frozen=True, forbid_unknown_fields=True):
    """How owners correct, change their mind, ask for an exception, and what else they say."""

    corrects: Mapping[str, Sequence[str]]
    changes: Mapping[str, Sequence[str]]
    excepts: Spoken
    reads: Spoken
    remarks: Mapping[str, Sequence[str]]
    chats: Mapping[str, Sequence[str]]


class PoisonTexts(Struct, frozen=True, forbid_unknown_fields=True):
    marks: tuple[str, ...]
    orders: str
    page: str


class Texts(Struct, frozen=True, forbid_unknown_fields=True):
    tasks: tuple[TaskClass, ...]
    rules: tuple[HiddenRule, ...]
    words: Mapping[str, Sequence[str]]
    frames: Frames
    poison: PoisonTexts

    def task(self, name: str) -> TaskClass:
        return next(each for each in self.tasks if each.name == name)

    def rule(self, name: str) -> HiddenRule:
        return next(each for each in self.rules if each.name == name)

    def rules_of(self, task: str) -> tuple[HiddenRule, ...]:
        return tuple(each for each in self.rules if each.task == task)


@cache
def load() -> Texts:
    return msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), Texts)


def fold(text: str) -> str:
    """Return the text in a form to compare: without case, with single spaces, without a final full stop."""
    return " ".join(text.casefold().split()).rstrip(".")
