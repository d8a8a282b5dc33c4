"""The peer in a process of ours, built like its own one-shot command and its gateway.

Its calls block, so each running conversation has a separate thread.
"""

import asyncio
import json
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from importlib import import_module
from typing import Any, TypeVar

from benchmarks.talk import SCHEMA, Wire, history, spoken

MOST = 256
"""Threads. Its gateway has ten, with which it is no faster."""
T = TypeVar("T")


class Peer:
    """Uses the provider in its config.yaml; conversations share one store, as in its gateway. `further` is
    what one of its surfaces passes to an agent in addition."""

    def __init__(self, **further: Any) -> None:
        self._threads = ThreadPoolExecutor(MOST)
        self._store = import_module("hermes_state").SessionDB()
        self._options = {**self._resolved(), **further}
        import_module("tools.registry").registry.register(
            name="probe", toolset="probe", schema=SCHEMA, handler=lambda told, **_: spoken(told["left"])
        )

    def _resolved(self) -> dict[str, Any]:
        """Return what its one-shot command passes to an agent, plus the toolset `probe`."""
        config = import_module("hermes_cli.config").load_config()
        resolve = import_module("hermes_cli.runtime_provider").resolve_runtime_provider
        model = config["model"]["default"]
        runtime = resolve(requested=None, target_model=model)
        names = ("api_key", "base_url", "provider", "api_mode", "credential_pool")
        toolsets = import_module("hermes_cli.tools_config")._get_platform_tools(config, "cli")
        return {
            **{name: runtime.get(name) for name in names},
            "model": model,
            "enabled_toolsets": [*sorted(toolsets), "probe"],
            "quiet_mode": True,
            "platform": "cli",
            "session_db": self._store,
        }

    async def open(self, count: int) -> "Talk":
        """Open a new conversation, or resume a stored one."""
        return await self.away(lambda: self._open(count))

    def _open(self, count: int) -> "Talk":
        name, messages = uuid.uuid4().hex, []
        if count:
            self._store.create_session(name, "cli", model=self._options["model"])
            self._store.replace_messages(name, history(count))
            messages = self._store.get_messages_as_conversation(name, repair_alternation=True)
        return Talk(self, self.agent(name), messages)

    def agent(self, session: str) -> Any:
        agent = import_module("run_agent").AIAgent(session_id=session, **self._options)
        agent.suppress_status_output = True
        return agent

    async def away(self, job: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, copy_context().run, job)

    async def close(self) -> None:
        self._threads.shutdown()
        self._store.close()


class Talk:
    def __init__(self, peer: Peer, agent: Any, messages: list[Wire]) -> None:
        self._peer = peer
        self._agent = agent
        self._messages = messages

    async def send(self, text: str) -> int:
        """Run one turn. Return how many messages there are after it."""
        return await self._peer.away(lambda: self._send(text))

    def _send(self, text: str) -> int:
        done = self._agent.run_conversation(text, conversation_history=self._messages)
        if done.get("failed") or not done.get("completed"):
            raise SystemExit(f"the peer did not answer: {json.dumps(done, default=str)[-1000:]}")
        self._messages = done["messages"]
        return len(self._messages)
