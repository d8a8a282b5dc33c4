"""`hone recall use` and `hone recall status`: choose an embedder, agree to its host, see its progress."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import click

from hone.app import Hone
from hone.cli.context import with_home
from hone.cli.options import FAILED, Options, confirm
from hone.cli.output import echo
from hone.cli.settings_file import Changes, write_settings
from hone.core.clock import SystemClock
from hone.core.embedding import Embedder
from hone.core.errors import HoneError
from hone.core.visible import visible
from hone.features.recall.opening import make_embedder, open_embedder
from hone.models.weights import megabytes
from hone.settings import Settings, home_folder, read
from hone.stores.extent import Extent, measure_messages

OFF = "off"
READ = 2_000
"""The approximate bytes of a message that are read to embed it."""
BYTES_A_TOKEN = 4
TEST = "Does this work?"
OFFER = (
    "Search goes by words alone. To search by meaning, too, on this machine:\n"
    "  hone models add minilm\n  hone recall use local/minilm\n"
    "Or with a server: hone recall use PROVIDER/MODEL, such as ollama/nomic-embed-text"
)


@click.command(short_help="Choose what makes search understand meanings, or turn it off.")
@click.argument("embedder")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.pass_obj
def use(options: Options, embedder: str, yes: bool) -> int:
    """Choose what makes vectors of text, so that search finds meanings beside words.

    EMBEDDER is local/minilm or local/gte-small, which run on this machine (see hone models list);
    PROVIDER/MODEL for a server that speaks OpenAI's /v1/embeddings, such as ollama/nomic-embed-text; or off.

    It is tested before anything is written to hone.toml. If text would leave this machine, you are told
    where to, and asked; nothing is sent before you agree.
    """
    home = options.home or home_folder()
    if embedder == OFF:
        _write(home, "", "")
        click.echo("Search goes by words alone from now on. Nothing is sent anywhere.")
        return 0
    return asyncio.run(_use(home, embedder, yes=yes))


async def _use(home: Path, name: str, *, yes: bool) -> int:
    settings = read(home)
    made = make_embedder(name, settings, home, SystemClock())
    try:
        extent = await measure_messages(home, READ)
        echo(map(visible, describe(name, made, extent, settings)))
        alone = f"Hone cannot ask here whether text may be sent to {made.host}. Add --yes."
        if made.host and not confirm("Send it there?", alone, yes=yes):
            click.echo("Nothing was sent or changed.")
            return FAILED
        [vector] = await made.embed([TEST], "question")
    finally:
        await made.close()
    _write(home, name, made.host)
    size = megabytes(extent.messages * len(vector))
    click.echo(f"✓ It answers. Vectors take {len(vector):,} bytes a message, {size} for what is stored.")
    click.echo(f"Wrote hone.toml: recall.embedder = {visible(name)}. See how far it is: hone recall status")
    return 0


def describe(name: str, embedder: Embedder, extent: Extent, settings: Settings) -> Iterator[str]:
    """Describe what will be read and where it goes, before the owner is asked."""
    tokens = extent.size // BYTES_A_TOKEN
    amount = f"{extent.messages:,} messages, about {tokens:,} tokens"
    if not embedder.host:
        yield f"{name} is on this machine; no text leaves it. It reads what was said: {amount} so far."
        return
    yield f"{name} is not on this machine. This text is sent to {embedder.host}:"
    yield f"  - what was said in all conversations, once: {amount}"
    yield "  - each new message, and what you or the agent search for"
    yield "  - lessons, skills and templates, when they are compared"
    price = settings.prices.get(name)
    if price:
        yield f"It costs about ${tokens * price.input / 1e6:,.2f} for what is there."


@click.command(short_help="Show what makes vectors, and how many messages have one.")
@click.pass_obj
def status(options: Options) -> int:
    """Show what makes vectors, where text goes, how many messages have a vector and how many wait."""

    async def act(hone: Hone) -> int:
        name = hone.settings.recall.embedder
        if not name:
            click.echo(OFFER)
            return 0
        try:
            embedder = await open_embedder(hone.settings, hone.home, hone.clock)
        except HoneError as error:
            click.echo(f"✗ {visible(str(error))}\nUntil then search goes by words alone.")
            return FAILED
        assert embedder is not None
        try:
            echo(map(visible, await _report(hone, name, embedder)))
        finally:
            await embedder.close()
        return 0

    return with_home(options, act)


async def _report(hone: Hone, name: str, embedder: Embedder) -> list[str]:
    where = f"text is sent to {embedder.host}" if embedder.host else "text stays on this machine"
    lines = [f"embedder: {name}; {where}"]
    found = await hone.stores.vectors.coverage(embedder.id)
    size = embedder.id.rpartition(":")[2]
    taken = f" ({megabytes(found.made * int(size))})" if size.isdecimal() else ""
    lines.append(f"vectors:  {found.made:,} of {found.made + found.left:,} messages have one{taken}")
    if found.left:
        lines.append(f"          {found.left:,} are made in the background, while hone runs")
    return lines


def _write(home: Path, name: str, host: str) -> None:
    """Write the setting. It agrees only to the host in use."""
    changes: Changes = {("recall", "embedder"): name, ("recall", "send_to"): (host,) if host else ()}
    write_settings(home / "hone.toml", changes)
