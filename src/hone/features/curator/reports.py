"""The curator's reports as Markdown in the home: one for each run, and the mark that it is paused."""

import os
from collections.abc import Sequence
from pathlib import Path

from hone.core.curation import CuratorRun
from hone.core.errors import StoreError
from hone.core.visible import visible
from hone.files.atomic import draft

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


class Reports:
    """What cannot be printed is printed the next time somebody looks; the record is in the database."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def print(self, *runs: CuratorRun) -> None:
        for run in runs:
            try:
                self._write(f"round-{run.id:04}.md", markdown(run))
            except OSError:
                return

    def catch_up(self, runs: Sequence[CuratorRun]) -> None:
        """Prints what a killed process did not."""
        self.print(*(each for each in runs if not (self._folder / f"round-{each.id:04}.md").exists()))

    def pause(self) -> None:
        try:
            self._write(PAUSED, "The curator begins no round by itself while this file is here.\n")
        except OSError as error:
            raise StoreError(f"{self._folder / PAUSED} cannot be written: {error.strerror}.") from error

    def resume(self) -> None:
        try:
            (self._folder / PAUSED).unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{self._folder / PAUSED} cannot be removed: {error.strerror}.") from error

    def _write(self, name: str, text: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with draft(self._folder, 0o600) as (file, path):
            file.write(text.encode())
            file.flush()
            os.fsync(file.fileno())
            path.replace(self._folder / name)
