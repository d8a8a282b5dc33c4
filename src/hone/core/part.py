"""The base class of what a feature or a plugin adds to Hone, and the places it connects to."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hone.core.backend import Backend
from hone.core.events import Emit, Learned
from hone.core.holding import Holding
from hone.core.ids import SessionId
from hone.core.ledger import Ledger
from hone.core.messages import Attachment, Reminder
from hone.core.model import Connection
from hone.core.monitor import Monitor
from hone.core.ports import Header, StoredSession
from hone.core.prefix import Prefix
from hone.core.tool import Tool, Toolbox
from hone.core.transcript import Source, Transcript
from hone.core.turn import Turn
from hone.core.work import Work, WorkObserver

if TYPE_CHECKING:
    from hone.core.embedding import Meanings
    from hone.core.measured import Attribution, StudyResult
    from hone.core.queued import CommandStep, QueuedCommand
    from hone.core.recall import Recall

Connect = Callable[[str], Connection]
"""Connects to the model with the name that follows the provider's in `provider/name`."""

Remind = Callable[[str, Transcript], Awaitable[tuple[Reminder | None, str]]]
"""Returns what memory holds about the user's words, and a warning for the user if memory failed."""


class SessionSeed(Protocol):
    """Examples for the start of a new session. `wanted` is what the user asked for: a name, or auto."""

    @property
    def wanted(self) -> str: ...

    async def begin(self, words: str, transcript: Transcript, tools: Toolbox) -> tuple[Transcript, str]:
        """Return the transcript with examples that fit the user's first words, and a line for the user."""
        ...

    async def count(self, template: str, session: SessionId) -> None:
        """Count one use by this session; a repeated call counts once."""
        ...


class Part:
    """A feature's or plugin's part of one Hone. Every method does nothing until it is overridden."""

    name = ""

    async def ready(self) -> None:
        """Prepare what `tools` needs. Called before a session opens or resumes."""

    def tools(self, folder: Path, source: Source | None = None) -> Sequence[Tool]:
        """Return tools for sessions in this folder; with a `source`, for the review of that conversation."""
        return ()

    def review_tools(self, folder: Path, source: Source, ledger: Ledger) -> Sequence[Tool]:
        """Return tools for the review of a conversation. What they record in `ledger` is staged: it takes
        effect when the review ends."""
        return self.tools(folder, source)

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        """Return the tools of a conversation with this part's code around their calls, plus its own tools
        that need observing. It may refuse a call but never allow one: permissions are checked inside."""
        return tools

    async def ended(self, turn: Turn, header: Header, emit: Emit, *, again: bool) -> str:
        """Hear that a turn of the user's has ended. Return what the model must be told before it may end, or
        nothing. `again`: the model was already told something for this turn, and is told nothing more."""
        return ""

    async def learned(self, event: Learned, folder: Path) -> None:
        """Hear that a review changed what is known from a conversation in a folder."""

    def observer(self, folder: Path) -> WorkObserver | None:
        """Return what observes the changes that tools make to files in one conversation's folder."""
        return None

    def monitor(self) -> Monitor | None:
        """Return what hears of turns, model calls and tool calls as they begin and end."""
        return None

    def models(self) -> Mapping[str, Connect]:
        """Return how to connect to models, by provider name."""
        return {}

    def backends(self) -> Mapping[str, Callable[[], Backend]]:
        """Return makers of memory backends by name."""
        return {}

    def sections(self) -> Sequence[str]:
        """Return further sections of the system prompt."""
        return ()

    def folder_sections(self, folder: Path) -> Sequence[str]:
        """Return further sections of the system prompt for sessions in this folder."""
        return ()

    async def news(self, folder: Path, prefix: Prefix, transcript: Transcript) -> str:
        """Return what the model must be told before the user's next words; empty if nothing is new."""
        return ""

    async def attach(self, words: str, folder: Path) -> Sequence[Attachment]:
        """Return the content behind names in the user's words that only this part can read. Raises
        HoneError."""
        return ()

    async def expand(self, name: str, argument: str, folder: Path) -> Attachment | None:
        """Return the text behind a chat command such as /server:prompt; None if this part has no such
        command."""
        return None

    def offer_servers(self, folder: Path, servers: Sequence[Mapping[str, Any]]) -> None:
        """Accept the MCP servers that an editor names for conversations in a folder. None runs until the
        owner approves it. Raises HoneError."""

    async def fetch_skill(self, source: str, folder: str) -> Mapping[str, bytes] | None:
        """Return the files of the skill in a `folder` of a source, or of its only skill, by path; None if
        this part has no such source. Raises HoneError."""
        return None

    async def seed(self, wanted: str, toolbox: Toolbox) -> SessionSeed | None:
        """Return what a new session begins with, or None if this part has no examples to offer."""
        return None

    async def resumed(self, stored: StoredSession) -> None:
        """Note that a stored session is resumed."""

    async def import_transcript(self, lines: bytes, form: str, label: str) -> Sequence[StoredSession]:
        """Store what another agent hands over, all of it as foreign text, and return the conversations as
        they are now. `form` names the format of the lines, `label` their source: the same conversation under
        another label is another one. Raises Refused."""
        return ()

    def recall(self, recall: "Recall") -> "Recall":
        """Return the search over all sessions, extended by this part."""
        return recall

    def meanings(self) -> "Meanings | None":
        """Return what makes vectors of short texts."""
        return None

    async def shared_entries(self) -> Sequence[str]:
        """Return entries that other people share with the owner. Agents never copy them into the journal."""
        return ()

    async def log_lines(self, limit: int) -> Sequence[str]:
        """Return labeled lines about other people's newest changes that reach the owner's prompts."""
        return ()

    def remind(self) -> Remind | None:
        """Return the function that reminds one conversation of what memory holds."""
        return None

    def attend(self) -> None:
        """Start what runs beside the conversations. A long-running process calls this."""

    def notify(self) -> None:
        """Hear that something may have changed: a turn or a review ended."""

    async def finish(self) -> None:
        """Complete pending work before the process ends, within a few seconds."""

    async def has_work(self) -> bool:
        """Tell whether work is left that a process can do after the owner has gone."""
        return False

    async def work(self) -> None:
        """Do the work that is left, for as long as it takes. A process that stays behind calls this."""

    async def send(self) -> None:
        """Send copies of what is known to where they are kept, for as long as it takes."""

    async def tend(self, emit: Emit) -> None:
        """Do other work if some is due. Called from time to time while the user is idle."""

    async def next_tend(self) -> datetime | None:
        """Return when `tend` will next have work if nothing happens until then; None if nothing is in sight.
        A worker comes back at that time."""
        return None

    async def perform(self, command: "QueuedCommand") -> "CommandStep | None":
        """Do a step of a command that the owner queued, and return its progress; None if it belongs to
        another part. A step that was broken off is repeated. Raises HoneError; then it is tried again."""
        return None

    async def findings(self, kind: str, name: str, digest: str) -> Sequence[str]:
        """Return what was measured about a skill, a journal entry or a template, one line each."""
        return ()

    async def measured(self, kind: str, name: str, digest: str) -> Sequence["StudyResult"]:
        """Return the same as figures."""
        return ()

    def attribution(self) -> "Attribution | None":
        """Return what tells which entries of the journal were used."""
        return None

    async def settle_skills(self, names: Sequence[str]) -> None:
        """Check these skills, which have checks, unless their files have passed, and switch off those that
        fail. Called before a skill is listed or read."""

    async def check_skills(self, names: Sequence[str]) -> Sequence[tuple[bool, str]]:
        """Run the checks of these skills now, or of all if none is named. Return a line on each, with whether
        it passed."""
        return ()

    async def count_stale(self) -> int:
        """Count the learned skills that have not been used for a long time."""
        return 0

    async def leftovers(self, sessions: Sequence[SessionId]) -> Sequence[str]:
        """Return what still holds text of these deleted sessions, and how to delete it."""
        return ()

    async def checks(self) -> Sequence[tuple[bool, str]]:
        """Return lines for `hone doctor --deep`, each with whether all is well."""
        return ()

    def holdings(self) -> Sequence[Holding]:
        """Return the places where this part stores text, for erase, backup and doctor."""
        return ()

    async def close(self) -> None:
        """Release what this part opened."""


HOOKS = tuple(name for name in vars(Part) if not name.startswith("_") and name != "name")
