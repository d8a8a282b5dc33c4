"""execute_code: Python in a process of its own, in the same cell as the terminal's commands."""

from pathlib import Path
from typing import Annotated

import msgspec

from hone.core.messages import sound
from hone.core.permit import Effect
from hone.core.tool import Outcome, Tool, ToolKind
from hone.core.tool_context import ToolContext
from hone.sandbox.spec import SandboxUnavailable
from hone.sandbox.workspace import Workspace
from hone.tools.define import tool
from hone.tools.doubts import ApprovalRules, refused
from hone.tools.results import told

_SNIPPET = Path(__file__).with_name("snippet.py").read_text("utf-8")


def code_tool(bench: Workspace, rules: ApprovalRules) -> Tool:
    @tool(effects={Effect.READ, Effect.WRITE, Effect.EXECUTE}, kind=ToolKind.CODE, network_flag="network")
    async def execute_code(
        context: ToolContext,
        code: str,
        timeout: Annotated[int, "seconds", msgspec.Meta(ge=1, le=3600)] = 60,
        network: bool = False,
    ) -> Outcome:
        """Run Python in a sandbox. Shows what it prints and the value of the last line."""
        code = sound(code)
        choice = await bench.choice()
        place = str(bench.folder)
        no = await rules.refusal(context, code, choice, place=place, network=network, code=True)
        if no:
            return no
        try:
            launch = bench.launch([bench.python, "-I", "-u", "-c", _SNIPPET], choice, network=network)
            ended = await bench.run(launch, "execute_code", timeout, code.encode())
        except (OSError, ValueError, SandboxUnavailable) as error:
            return refused(f"Not run: {error}.")
        trust = rules.trust(choice, network=network)
        return told(ended, choice, timeout, network=network, trust=trust)

    return execute_code
