"""A Hone whose provider is a Stage."""

from pathlib import Path

from msgspec.structs import replace

from hone import Hone
from hone.core.clock import Clock
from hone.core.tool import Tool
from hone.models.fake_provider.shapes import Format
from hone.settings import Settings
from hone.settings.sections import ProviderSettings

DEFAULTS = Settings()


def provider(format: Format, url: str, key: str = "") -> ProviderSettings:
    return ProviderSettings(url if format == "anthropic" else f"{url}/v1", format, key)


def furnish(
    home: Path,
    folder: Path,
    *providers: ProviderSettings,
    clock: Clock | None = None,
    tools: tuple[Tool, ...] = (),
    settings: Settings = DEFAULTS,
) -> Hone:
    """The first provider is called `stage`, the second one `spare`."""
    named = dict(zip(("stage", "spare"), providers, strict=False))
    whole = replace(settings, providers=named)
    return Hone(home=home, model="stage/scripted", folder=folder, tools=tools, settings=whole, clock=clock)
