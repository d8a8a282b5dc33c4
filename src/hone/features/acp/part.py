"""The tools that work through an editor, in every conversation once they are turned on."""

from collections.abc import Sequence
from pathlib import Path

from hone.app import Hone
from hone.core.part import Part
from hone.core.tool import Tool
from hone.core.work import Work
from hone.features.acp.editor_tools import file_tools, terminal_tool


class AcpPart(Part):
    """Also applies where no editor is connected: a conversation has the same tools in a terminal and in its
    review, so the provider finds its prompt in the cache."""

    name = "acp"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        wanted = self._hone.settings.acp
        files = file_tools(folder, work) if wanted.editor_files else ()
        terminal = (terminal_tool(folder, work),) if wanted.editor_terminal else ()
        return [*tools, *files, *terminal]
