"""The curator's reports as Markdown in the home: printouts of its rounds, and the mark that it is paused."""

from collections.abc import Sequence
from pathlib import Path

from hone.core.curation import CuratorRun
from hone.core.errors import StoreError
from hone.core.visible import visible
from hone.files.atomic import write

FOLDER, PAUSED = "curator", "paused"


def markdown(round: CuratorRun) -> str:
    when = round.at.astimezone().strftime("%Y-%m-%d %H:%M")
    lines = [f"# Round {round.id} of the curator, {when}", "", f"Begun because: {round.why}."]
    if round.changes:
        named = ", ".join(map(str, round.changes))
        more = "`hone show ID` tells more, `hone undo ID` takes its group back."
        lines.append(f"Changes: {named}. {more}")
    if round.session:
        lines.append(f"A model was asked in session {round.session}.")
    return visible("\n".join((*lines, "", round.report, "")))


class Reports:
    """What cannot be printed is printed the next time somebody looks; the record is in the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def print(self, *rounds: CuratorRun) -> None:
        for round in rounds:
            try:
                write(self._folder / f"round-{round.id:04}.md", markdown(round).encode())
            except (OSError, StoreError):
                return

    def catch_up(self, rounds: Sequence[CuratorRun]) -> None:
        """Prints what a killed process did not."""
        self.print(*(each for each in rounds if not (self._folder / f"round-{each.id:04}.md").exists()))

    def pause(self) -> None:
        try:
            write(self._folder / PAUSED, b"The curator begins no round by itself while this file is here.\n")
        except OSError as error:
            raise StoreError(f"{self._folder / PAUSED} cannot be written: {error.strerror}.") from error

    def resume(self) -> None:
        try:
            (self._folder / PAUSED).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder / PAUSED} cannot be removed: {error.strerror}.") from error
