"""Let the agent's own tools read what the team shares, labeled as such."""

import json
from collections.abc import Mapping
from typing import Any, Protocol

from hone.core.knowledge import SharedKnowledge, SharedSkill
from hone.core.messages import ToolCall
from hone.core.skill import DOCUMENT
from hone.core.tool import Outcome, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.knowledge.resemblance import shares_any
from hone.prompt.shared import PREFIX, skill_line
from hone.tools.wrappers import Wrapper

SHOWN = 10
"""The most skills of the team in a list."""


class SharedSource(Protocol):
    async def read(self) -> SharedKnowledge: ...

    async def skill_files(self, name: str) -> dict[str, bytes]: ...


class SharedSkillView(Wrapper, frozen=True):
    """Reads skills of the team by their name, prefixed with team/. They are colleagues' words: like a file in
    a trusted folder, never the owner's."""

    source: SharedSource

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        asked = _arguments(call)
        name = asked.get("name")
        if not isinstance(name, str) or not name.startswith(PREFIX):
            return await self.tool.run(call, context)
        name, file = name.removeprefix(PREFIX), asked.get("file") or DOCUMENT
        files = await self.source.skill_files(name)
        if not files:
            return refused(f"Your team shares no skill {one_line(name, 80)!r}.")
        if file not in files:
            return refused(
                f"{PREFIX}{name} has no file {one_line(str(file), 100)!r}. Files: {', '.join(sorted(files))}."
            )
        known = await self.source.read()
        sharer = next((each.sharer for each in known.skills if each.name == name), "a colleague")
        others = f"\n\nFiles: {', '.join(sorted(files))}." if file == DOCUMENT and len(files) > 1 else ""
        text = visible(files[file].decode())
        return Outcome(
            f"Shared by {one_line(sharer, 64)}, of the user's team:\n\n{text}{others}", trust=Trust.LOCAL
        )


class SharedSkillList(Wrapper, frozen=True):
    """Adds matching skills of the team to the owner's."""

    source: SharedSource

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        found = await self.tool.run(call, context)
        query = _arguments(call).get("query") or ""
        skills = (await self.source.read()).skills
        near = [each for each in skills if not query or shares_any(str(query), _words(each))]
        if found.failed or not near:
            return found
        lines = "\n".join(f"- {skill_line(each)}" for each in near[:SHOWN])
        return Outcome(f"{found.text}\nShared by the team:\n{lines}", trust=min(found.trust, Trust.LOCAL))


def _words(skill: SharedSkill) -> str:
    return f"{skill.name.replace('-', ' ')} {skill.description}"


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    try:
        value = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
