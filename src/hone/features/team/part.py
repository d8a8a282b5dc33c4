"""The part that provides the team's shared knowledge. Without a remote database it does nothing."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

from hone.app import Hone
from hone.core.holding import FOREVER, Backup, Holding
from hone.core.knowledge import SharedKnowledge
from hone.core.part import Part
from hone.core.prefix import Prefix
from hone.core.tool import Tool
from hone.core.transcript import Transcript
from hone.core.work import Work
from hone.features.team.service import TEAM, TeamKnowledge
from hone.features.team.showing import describe_log
from hone.features.team.tools import SharedSkillList, SharedSkillView
from hone.knowledge import descriptions
from hone.prompt.shared import describe_shared_news, read_told, shared_section


class TeamPart(Part):
    name = "team"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._known = SharedKnowledge()

    @cached_property
    def team(self) -> TeamKnowledge:
        """Return the team's knowledge. Raises Refused without a shared database."""
        return TeamKnowledge(self._hone)

    @property
    def _is_on(self) -> bool:
        """Tell whether the team's knowledge applies. It does not for the team itself, nor in an experiment,
        which measures the agent alone: its home has a file, which nobody shares. A user of a server works in
        an enclosure, too, and has a team."""
        stores = self._hone.stores
        return stores.open_owner is not None and stores.owner != TEAM

    async def read(self) -> SharedKnowledge:
        """Return what the team shares now."""
        if self._is_on:
            self._known = await self.team.reader.read(self._hone.library.today)
        return self._known

    async def ready(self) -> None:
        await self.read()

    def sections(self) -> Sequence[str]:
        section = shared_section(self._known)
        return (section,) if section else ()

    async def news(self, folder: Path, prefix: Prefix, transcript: Transcript) -> str:
        if self._hone.settings.memory.freshness == "next-session":
            return ""
        known = await self.read()
        told = read_told(prefix.system, (node.message for node in transcript.nodes))
        return describe_shared_news(told, known)

    async def shared_entries(self) -> Sequence[str]:
        return [each.text for each in (await self.read()).entries]

    async def log_lines(self, limit: int) -> Sequence[str]:
        if not self._is_on:
            return ()
        made = await descriptions.describe(self.team.keeper, await self.team.log(limit))
        lines = [describe_log(each) for each in made]
        return ["", "Shared by your team (hone team log):", *lines] if lines else ()

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        if not self._is_on:
            return tools
        return [self._wrap_one(tool) for tool in tools]

    def _wrap_one(self, tool: Tool) -> Tool:
        match tool.spec.name:
            case "skill_view":
                return SharedSkillView(tool, self)
            case "skills_list":
                return SharedSkillList(tool, self)
        return tool

    async def skill_files(self, name: str) -> dict[str, bytes]:
        """Return the files of a skill that the team shares; none if it shares no such skill."""
        return dict(await self.team.reader.files(name))

    def holdings(self) -> Sequence[Holding]:
        return (
            Holding(
                "team knowledge",
                "what you shared with your team, with your name, in the team's rows of the same tables",
                f"{FOREVER}, also after you leave the team",
                backup=Backup.LEFT_OUT,
                eraser="hone.features.team.erasing:TeamEraser",
            ),
        )
