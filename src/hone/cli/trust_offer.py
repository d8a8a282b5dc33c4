"""Ask in the chat whether the owner trusts the folder, once, when a lesson first waits for that."""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hone.app import Hone
from hone.cli.output import columns
from hone.cli.render import Paint
from hone.cli.terminal.asking import ask_trust
from hone.cli.trust import TrustFiles
from hone.core.errors import HoneError, Refused
from hone.core.ledger import ChangeId, Entry
from hone.core.visible import text_to_path, visible
from hone.knowledge.wording import CHAT, find_lessons, phrase, tell
from hone.learning.reconsider import find_withheld, reconsider
from hone.runtime.provenance.trusting import trust_folder
from hone.runtime.session import Session

Say = Callable[[str], None]


class TrustOffer:
    """Asks at most once in a conversation, and never again about a folder that has an answer."""

    def __init__(self, hone: Hone, paint: Paint, say: Say) -> None:
        self._hone = hone
        self._paint = paint
        self._say = say
        self._asked: set[str] = set()
        self._known: ChangeId | None = None

    def describe_unused(self, folder: Path) -> str:
        """Return which files of an unanswered folder would steer Hone; empty if there are none."""
        if self._hone.folders.is_answered(folder):
            return ""
        names = [file.name for file in TrustFiles.find(folder).shown()]
        are = "is" if len(names) == 1 else "are"
        listed = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        return (
            f"{listed} {are} not used: this folder is not trusted. To trust it: hone trust" if names else ""
        )

    async def make(self, session: Session) -> bool:
        """Ask if lessons wait for it. Tell whether they did."""
        folder = text_to_path(session.header.folder)
        with suppress(HoneError):
            if lessons := await self._find(session, folder):
                self._asked.add(session.id)
                await self._ask(session, folder, lessons)
                return True
        return False

    async def _find(self, session: Session, folder: Path) -> list[Entry]:
        """Check only if something has changed since the last check."""
        hone = self._hone
        if session.id in self._asked or not hone.folders.may_ask(folder, hone.library.today):
            return []
        latest = await hone.ledger.latest()
        if latest == self._known:
            return []
        self._known = latest
        return [*await find_withheld(hone, folder)]

    async def _ask(self, session: Session, folder: Path, lessons: list[Entry]) -> None:
        hone = self._hone
        texts = [phrase(each) for each in await find_lessons(hone.ledger, lessons)]
        files = TrustFiles.find(folder)
        hone.folders.note_asked(folder, hone.library.today)
        if not await ask_trust(folder, texts, files.shown(), self._paint):
            hone.folders.decline(folder)
            return
        try:
            files.trust(folder, hone.instructions, hone.permissions.approvals)
        except Refused as refusal:
            self._say(visible(str(refusal)))
            return
        trust_folder(hone.home, folder)
        made = await reconsider(hone, folder, {each.id for each in lessons})
        if session.id in made.conversations:
            await session.relabel(made.conversations[session.id])
        for line in tell(await find_lessons(hone.ledger, made.entries), CHAT, width=columns()):
            self._say(line)
        if files.shown() and len(session.transcript):
            self._say("Its files are used from the next conversation on: /new")
