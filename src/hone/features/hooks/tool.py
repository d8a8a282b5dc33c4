"""A tool with hooks before and after its calls."""

from collections.abc import Sequence

from hone.core.errors import HoneError
from hone.core.events import Notice
from hone.core.messages import ToolCall, framed
from hone.core.permissions import Mode
from hone.core.tool import Outcome, refused
from hone.core.tool_context import ToolContext
from hone.core.trust import Trust
from hone.core.turn import Origin
from hone.core.value import replace
from hone.core.work import Work
from hone.features.hooks.running import HookRunner
from hone.features.hooks.values import Hook, HookRuling, HookRun, describe_call, encode, rule
from hone.tools.wrappers import Wrapper

_OWN = (Origin.USER, Origin.DELEGATE)
"""The origins with hooks: the agent and its helpers. Reviews, the curator and compaction have none."""


class HookedTool(Wrapper, frozen=True):
    """Runs hooks around a tool. They can refuse a call or add to its result; the tool still asks for
    permission."""

    hooks: Sequence[Hook]
    runner: HookRunner
    work: Work

    async def run(self, call: ToolCall, context: ToolContext) -> Outcome:
        if context.header.origin not in _OWN:
            return await self.tool.run(call, context)
        details, said = describe_call(call), []
        for hook in self._find("before_tool"):
            ruling = await self._ask(hook, details, context)
            if ruling.refusal:
                return _refuse(call, ruling)
            said.append(ruling.added)
        outcome = await self.tool.run(call, context)
        details |= {"tool_response": outcome.text, "failed": outcome.failed}
        for hook in self._find("after_tool"):
            ruling = await self._ask(hook, details, context)
            said.append(ruling.refusal or ruling.added)
        if not any(said):
            return outcome
        text = "\n".join((outcome.text, *(framed("hook", each) for each in said if each)))
        return replace(outcome, text=text, trust=Trust.FOREIGN, withheld="")

    def _find(self, event: str) -> Sequence[Hook]:
        return [hook for hook in self.hooks if hook.is_for(event, self.spec.name)]

    async def _ask(self, hook: Hook, details: dict[str, object], context: ToolContext) -> HookRuling:
        """Run a hook. What it does to files is observed like a command."""
        header, folder = context.header, self.runner.folder
        told = encode(hook.settings.event, header.id, str(folder), details)
        outward = not hook.settings.sandbox
        around = self.work.around_command(folder, hook.name, context, network=outward)
        plans = context.permissions.mode is Mode.PLAN
        try:
            run = await self.runner.run(hook, told, around, read_only=plans)
        except HoneError as error:  # the observers of commands can refuse one
            run = HookRun(None, trouble=str(error).rstrip("."))
        ruling = rule(hook, run)
        if line := ruling.report(ruling.refusal if ruling.spoken else ""):
            context.emit(Notice(line))
        return ruling


def _refuse(call: ToolCall, ruling: HookRuling) -> Outcome:
    """Refuse a call. A hook's words are foreign; the news that it failed is our own."""
    if not ruling.spoken:
        return refused(f"{call.name} was not run: {ruling.refusal}.")
    reason = framed("hook", ruling.refusal)
    text = f"{call.name} was not run. A hook of the user's refuses it:\n{reason}"
    return Outcome(text, failed=True, trust=Trust.FOREIGN)
