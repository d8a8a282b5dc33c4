"""`hone acp`: serve an editor over the Agent Client Protocol."""

import asyncio
import signal
from collections.abc import Callable

import click

from hone.app import Hone
from hone.cli.detach import After, leave, spawn
from hone.cli.options import Options, mode_option
from hone.core.trust import Trust
from hone.features.acp.editor import Editor
from hone.features.acp.server import AcpServer
from hone.rpc.channels import StdioChannel
from hone.rpc.peer import MessageChannel
from hone.settings import home_folder

PLATFORM = "acp"
"""The platform recorded with changes that are made here."""
EPILOG = """\b
Zed, in settings.json:
  "agent_servers": {
    "Hone": {
      "type": "custom", "command": "hone", "args": ["acp"]
    }
  }

Other editors and clients take the same command. See docs/acp.md.
"""


@click.command(epilog=EPILOG)
@click.option(
    "--foreign", is_flag=True, help="Count what the client sends as foreign text: it is a program, not you."
)
@mode_option(noted=True)
@click.pass_obj
def acp(options: Options, foreign: bool) -> int:
    """Serve an editor over the Agent Client Protocol.

    An editor starts this command and talks to it on standard input and output; there is nothing to type
    here. It ends when the editor closes the connection. Reviews that are left then run in the background,
    as after hone run.
    """
    left = asyncio.run(serve(options, StdioChannel, Trust.FOREIGN if foreign else Trust.OWNER))
    spawn(options.home or home_folder(), left)
    return 0


async def serve(
    options: Options, open_channel: Callable[[], MessageChannel], voice: Trust = Trust.OWNER
) -> After:
    """Serve one editor until it disconnects or a signal arrives. Return who reviews what was said."""
    editor = Editor()
    channel = open_channel()  # from here on, printed text goes to standard error
    async with Hone(
        home=options.home, ask=editor.ask, mode=options.mode, learning="queue", platform=PLATFORM
    ) as hone:
        server = AcpServer(hone, editor, options.model, voice)
        serving = asyncio.create_task(server.run(channel))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, server.stop)
        try:
            await serving
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
        return await leave(hone)
