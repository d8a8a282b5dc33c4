"""The part that runs hooks. The rest is imported if there are any."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from hone.app import Hone
from hone.core.errors import Refused
from hone.core.events import Emit, Learned, Notice
from hone.core.messages import framed
from hone.core.part import Part
from hone.core.ports import Header
from hone.core.tool import Tool
from hone.core.turn import OBJECTION, Turn
from hone.core.visible import path_to_text, text_to_path
from hone.core.work import Work
from hone.features.hooks.running import HookRunner
from hone.features.hooks.tool import HookedTool
from hone.features.hooks.values import Hook, HookRuling, encode, rule
from hone.runtime.permissions.approval import HOOKS_FILE
from hone.runtime.project_files import parse_hooks, read_file


class HooksPart(Part):
    name = "hooks"

    def __init__(self, hone: Hone) -> None:
        self._hone = hone
        self._runners: dict[Path, HookRunner] = {}

    def find(self, folder: Path) -> tuple[Sequence[Hook], str]:
        """Return the hooks that count in a folder, and why those of its own file do not."""
        own = [Hook(each, "hone.toml") for each in self._hone.settings.hooks]
        if not self._hone.folders.trusts(folder):
            return own, ""
        approvals = self._hone.permissions.approvals.files
        try:
            file = read_file(folder, HOOKS_FILE)
            if file is None:
                return own, ""
            if not approvals.is_approved(folder, file):
                return own, approvals.explain(folder, file)
            return [*own, *(Hook(each, file.name) for each in parse_hooks(file))], ""
        except Refused as refusal:
            return own, str(refusal)

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        hooks = self._active(folder)
        around = [hook for hook in hooks if hook.settings.event in ("before_tool", "after_tool")]
        if not around:
            return tools
        return [HookedTool(tool, around, self._runner(folder), work) for tool in tools]

    async def ended(self, turn: Turn, header: Header, emit: Emit, *, again: bool) -> str:
        details = {"stop": turn.stop, "answer": turn.text, "error": turn.error, "stop_hook_active": again}
        folder = text_to_path(header.folder) if header.folder else self._hone.folder
        rulings = await self._tell("turn_end", folder, header.id, details)
        for ruling in rulings:
            if told := ruling.report(ruling.refusal or ruling.added):
                emit(Notice(told))
        objections = [ruling.refusal for ruling in rulings if ruling.refusal]
        if not objections:
            return ""
        said = framed("hook", "\n".join(objections))
        return f"{OBJECTION}\n{said}"

    async def learned(self, event: Learned, folder: Path) -> None:
        lessons = [
            {"text": each.text, "target": each.target, "change": each.undo, "state": each.standing}
            for each in event.lessons
        ]
        for ruling in await self._tell("learned", folder, event.job.session, {"lessons": lessons}):
            self._hone.say(ruling.report(ruling.refusal or ruling.added))

    async def close(self) -> None:
        for runner in self._runners.values():
            await runner.close()

    def _active(self, folder: Path) -> Sequence[Hook]:
        # An experiment measures the agent, and not what runs beside it.
        if self._hone.enclosure is not None:
            return ()
        hooks, why = self.find(folder)
        self._hone.say(why)
        return hooks

    def _runner(self, folder: Path) -> HookRunner:
        if folder not in self._runners:
            self._runners[folder] = HookRunner(folder, self._hone.toolboxes.sandbox, self._hone.clock)
        return self._runners[folder]

    async def _tell(
        self, event: str, folder: Path, session: str, details: Mapping[str, object]
    ) -> list[HookRuling]:
        told = encode(event, session, path_to_text(folder), details)
        hooks = [hook for hook in self._active(folder) if hook.is_for(event)]
        return [rule(hook, await self._runner(folder).run(hook, told)) for hook in hooks]
