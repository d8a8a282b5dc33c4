"""Write the curator's reports as Markdown, one per run, and store whether the curator is paused."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.curation import CuratorRun
from hone.core.documents import PAUSES, Documents
from hone.core.errors import StoreError
from hone.core.visible import visible
from hone.files.atomic import write
from hone.files.erasing import FileEraser

FOLDER, PAUSED = "curator", "paused"
[EVERYWHERE] = PAUSES.fixed
"""The document that pauses the curator on all machines that share a database."""
NOTE = b"The curator begins no round by itself while this file is here.\n"


def markdown(run: CuratorRun) -> str:
    when = run.at.astimezone().strftime("%Y-%m-%d %H:%M")
    lines = [f"# Round {run.id} of the curator, {when}", "", f"Begun because: {run.why}."]
    if run.changes:
        named = ", ".join(map(str, run.changes))
        more = "`hone show ID` tells more, `hone undo ID` takes its group back."
        lines.append(f"Changes: {named}. {more}")
    if run.session:
        lines.append(f"A model was asked in session {run.session}.")
    return visible("\n".join((*lines, "", run.report, "")))


def erase_reports(hone: Hone) -> FileEraser:
    """Remove words from the reports."""
    return FileEraser(hone.home, "curator", (f"{FOLDER}/",))


class Reports(Struct, frozen=True):
    """The reports. One that cannot be written now is written at the next look; the record is in the
    database."""

    folder: Path
    documents: Documents

    def print(self, *runs: CuratorRun) -> None:
        for run in runs:
            try:
                write(self.folder / f"round-{run.id:04}.md", markdown(run).encode())
            except (OSError, StoreError):
                return

    def catch_up(self, runs: Sequence[CuratorRun]) -> None:
        """Write the reports that a killed process did not."""
        self.print(*(each for each in runs if not (self.folder / f"round-{each.id:04}.md").exists()))

    @property
    def is_paused(self) -> bool:
        return (self.folder / PAUSED).exists() or self.documents.read(PAUSES, EVERYWHERE) is not None

    def pause(self) -> None:
        if self.documents.shared:  # a worker on any machine may begin a round
            self.documents.write(PAUSES, EVERYWHERE, NOTE)
            return
        try:
            write(self.folder / PAUSED, NOTE)
        except OSError as error:
            raise StoreError(f"{self.folder / PAUSED} cannot be written: {error.strerror}.") from error

    def resume(self) -> None:
        self.documents.delete(PAUSES, EVERYWHERE)
        try:
            (self.folder / PAUSED).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self.folder / PAUSED} cannot be removed: {error.strerror}.") from error
