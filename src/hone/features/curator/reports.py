"""Write the curator's reports as Markdown, one per run, and store whether the curator is paused."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from hone.app import Hone
from hone.core.curation import CuratorRun
from hone.core.errors import StoreError
from hone.core.visible import visible
from hone.files.atomic import write
from hone.files.erasing import FileEraser

FOLDER, PAUSED = "curator", "paused"


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
    """Take words out of the reports."""
    return FileEraser(hone.home, "curator", (f"{FOLDER}/",))


class Reports(Struct, frozen=True):
    """What cannot be printed is printed the next time somebody looks; the record is in the database."""

    folder: Path

    def print(self, *runs: CuratorRun) -> None:
        for run in runs:
            try:
                write(self.folder / f"round-{run.id:04}.md", markdown(run).encode())
            except (OSError, StoreError):
                return

    def catch_up(self, runs: Sequence[CuratorRun]) -> None:
        """Prints what a killed process did not."""
        self.print(*(each for each in runs if not (self.folder / f"round-{each.id:04}.md").exists()))

    def pause(self) -> None:
        try:
            write(self.folder / PAUSED, b"The curator begins no round by itself while this file is here.\n")
        except OSError as error:
            raise StoreError(f"{self.folder / PAUSED} cannot be written: {error.strerror}.") from error

    def resume(self) -> None:
        try:
            (self.folder / PAUSED).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self.folder / PAUSED} cannot be removed: {error.strerror}.") from error
