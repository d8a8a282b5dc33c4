"""Put together the sections of a new conversation's prompt, from what is known and trusted now."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from hone.core.clock import Clock
from hone.core.knowledge import Snapshot
from hone.core.secrets import redact
from hone.prompt.compose import index, instructions, journal, order_sections, surroundings
from hone.runtime.instructions import FoundInstructions, Instructions, UnusedInstructions


class PromptSections(Struct, frozen=True):
    """`say` takes a sentence for the owner, as when a folder's instructions are not used."""

    clock: Clock
    instructions: Instructions
    say: Callable[[str], None]

    def order(self, folder: Path, known: Snapshot, added: Iterable[str]) -> Iterable[str]:
        """Return all sections; `added` are those of plugins and programs."""
        return order_sections(
            added,
            index(known.skills, known.total),
            self._instructed(folder),
            redact(journal(known)),
            surroundings(folder, self.clock.now().astimezone().date(), sys.platform),
        )

    def _instructed(self, folder: Path) -> str:
        found = self.instructions.of(folder)
        if isinstance(found, UnusedInstructions):
            self.say(found.why)
        return instructions(found.name, found.text) if isinstance(found, FoundInstructions) else ""
