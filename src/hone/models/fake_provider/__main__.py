"""Run the fake provider as a separate process: `python -m hone.models.fake_provider`."""

import argparse
import asyncio
import signal
from pathlib import Path

from hone.core.errors import SettingsError
from hone.models.fake_provider.faults import Choice, first
from hone.models.fake_provider.returning import RULES
from hone.models.fake_provider.server import FakeProvider
from hone.models.scripted import SCRIPTS, load


def _chosen(fault: str | None) -> str | Choice | None:
    """Parse NAME, or NAME:COUNT for a fault that ends after some calls."""
    name, colon, count = (fault or "").partition(":")
    return first(int(count), name) if colon else fault


async def _run(stage: FakeProvider) -> None:
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, over.set)
    async with stage:
        print(stage.url, "A scripted model answers here, no real one.", sep="\n", flush=True)
        await over.wait()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="hone.models.fake_provider", description="A scripted model on loopback."
    )
    parser.add_argument("--script", default="hello", help=f"a JSON file or one of {', '.join(SCRIPTS)}")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before an answer begins")
    parser.add_argument("--recall", type=int, default=64, help="how many requests the cache remembers")
    parser.add_argument(
        "--returns", default="", choices=RULES, help="what chat completions want back with each reply"
    )
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--key", help="the API key to insist on")
    parser.add_argument("--record", type=Path, help="append each request body to this file as a line of JSON")
    parser.add_argument("--fault", help="NAME or NAME:COUNT, a fault for all or for the first model calls")
    options = vars(parser.parse_args())
    try:
        options |= {"script": load(options["script"]), "fault": _chosen(options["fault"])}
        stage = FakeProvider(keep=False, **options)
    except (SettingsError, ValueError) as reason:
        parser.error(str(reason))
    asyncio.run(_run(stage))


if __name__ == "__main__":
    main()
