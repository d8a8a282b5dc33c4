"""The part that offers named helpers to the model. It is loaded where there are files with some."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.part import Part
from hone.core.tool import Tool
from hone.core.work import Work
from hone.features.agents.parsing import AgentFile, parse_agent
from hone.runtime.permissions.approval import AGENTS_FOLDERS, ProjectFile
from hone.runtime.project_files import list_agents, read_file
from hone.tools.delegate import delegate_tool

OWN = "agents"
"""The folder in Hone's home."""
DELEGATE = "delegate"


class AgentsPart(Part):
    name = "agents"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        found, problems = self.find(folder)
        for problem in problems:
            self._hone.say(problem.split("\n")[0])
        if not found:
            return tools
        offered = delegate_tool(helpers=[each.helper for each in found])
        return [offered if tool.spec.name == DELEGATE else tool for tool in tools]

    def find(self, folder: Path) -> tuple[Sequence[AgentFile], Sequence[str]]:
        """Return the agents that count in a folder by name, and why others do not. If two have the same name,
        the project's wins."""
        found: dict[str, AgentFile] = {}
        problems: list[str] = []
        for file in (*self._own(problems), *self._of_project(folder, problems)):
            try:
                agent = parse_agent(file.name, file.text)
                found[agent.helper.name] = agent
            except Refused as refusal:
                problems.append(str(refusal))
        return [found[name] for name in sorted(found)], problems

    def find_all(self, folder: Path) -> tuple[Sequence[AgentFile], Sequence[str]]:
        """Return what `find` returns, plus what an untrusted folder has, since somebody asks for it here."""
        found, problems = self.find(folder)
        if self._hone.folders.trusts(folder):
            return found, problems
        names = (name for place in AGENTS_FOLDERS for name in list_agents(folder, place))
        why = "is not used, because this folder is not trusted. `hone trust` shows it."
        return found, [*problems, *(f"{name} {why}" for name in names)]

    def list_tools(self) -> frozenset[str]:
        """Return the names of the tools that a helper can have."""
        return frozenset(self._hone.toolboxes.show(self._hone.folder)) - {DELEGATE}

    def _own(self, problems: list[str]) -> Iterator[ProjectFile]:
        """Yield the owner's files. Tools cannot write to the home, so none needs approval."""
        yield from _read(self._hone.home, list_agents(self._hone.home, OWN), problems)

    def _of_project(self, folder: Path, problems: list[str]) -> Iterator[ProjectFile]:
        """Yield what the owner has approved. An untrusted folder yields nothing."""
        if not self._hone.folders.trusts(folder):
            return
        approvals = self._hone.permissions.approvals.files
        names = [name for place in reversed(AGENTS_FOLDERS) for name in list_agents(folder, place)]
        for file in _read(folder, names, problems):
            if approvals.is_approved(folder, file):
                yield file
            else:
                problems.append(approvals.explain(folder, file))


def _read(folder: Path, names: Iterable[str], problems: list[str]) -> Iterator[ProjectFile]:
    for name in names:
        try:
            file = read_file(folder, name)
        except Refused as refusal:
            problems.append(str(refusal))
            continue
        if file:
            yield file
