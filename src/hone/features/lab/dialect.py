"""The names of an agent's tools, and the start of its reviews: the learner can talk to Hone and to a peer."""

from typing import Protocol

import msgspec
from msgspec import Struct

from hone.core.messages import ToolCall
from hone.features.lab.request import MadeCall
from hone.features.lab.texts import Target
from hone.models.scripted import call
from hone.prompt.review import text

FIRM = ("add_anyway", "create_anyway")
KNOWN, THERE = "Not added: this is already known", "This entry is already there"
ACCEPTED = ("Noted.", "Saved (change", "Waits for the user", KNOWN, THERE)
"""The start of the result of a call that was not refused, since not every wire format says so."""
MALFORMED = '"action":"save"'
"""The action of a malformed call, which does not exist."""
SKILL = "how-to-write-{task}"


class Note(Struct, frozen=True):
    """Something to save: a text and the words it rests on. `old` is the entry that it replaces."""

    text: str
    evidence: str
    target: Target = "memory"
    task: str = ""
    old: str = ""


class Dialect(Protocol):
    def is_review(self, words: str) -> bool:
        """Tell whether these words ask for a review."""
        ...

    def note(self, note: Note, action: str) -> ToolCall:
        """Save in the journal: `add`, `replace`, or `add_anyway` after a refusal that offers it."""
        ...

    def teach(self, note: Note, document: str, action: str) -> ToolCall:
        """Save a skill: `create` or `edit`."""
        ...

    def malformed(self, note: Note) -> ToolCall:
        """Return a call that tries to save, but is wrong."""
        ...

    def view(self, skill: str) -> ToolCall: ...

    def has_failed(self, attempt: MadeCall) -> bool: ...

    def offers_anyway(self, attempt: MadeCall) -> bool:
        """Tell whether a refusal says that it can be saved anyway."""
        ...


class HoneDialect:
    """Hone's own tools."""

    def is_review(self, words: str) -> bool:
        return text("review-ending") in words

    def note(self, note: Note, action: str) -> ToolCall:
        more = {"match": note.old} if action == "replace" else {}
        target = "memory" if note.target == "skill" else note.target
        return call("memory", action=action, target=target, text=note.text, evidence=[note.evidence], **more)

    def teach(self, note: Note, document: str, action: str) -> ToolCall:
        return call(
            "skill_manage", action=action, name=skill_name(note), text=document, evidence=[note.evidence]
        )

    def malformed(self, note: Note) -> ToolCall:
        return call("memory", action="save", target="owner", text=note.text)

    def view(self, skill: str) -> ToolCall:
        return call("skill_view", name=skill)

    def has_failed(self, attempt: MadeCall) -> bool:
        return attempt.failed or not attempt.result.startswith(ACCEPTED)

    def offers_anyway(self, attempt: MadeCall) -> bool:
        return any(word in attempt.result for word in FIRM)


def skill_name(note: Note) -> str:
    return SKILL.format(task=note.task)


def write_skill(note: Note, lines: list[str]) -> str:
    """Return a whole SKILL.md with these lines."""
    description = msgspec.json.encode(f"Follow this before you write {note.task} notes.").decode()
    steps = "\n".join(f"- {line}" for line in lines)
    return f"---\nname: {skill_name(note)}\ndescription: {description}\n---\n\n# Steps\n\n{steps}\n"
