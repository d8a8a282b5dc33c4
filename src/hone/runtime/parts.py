"""Load the parts of features and plugins by name, each when one of its hooks is first needed."""

import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from hone.core.errors import HoneError, Refused, SettingsError
from hone.core.events import Emit, Learned
from hone.core.loading import import_object
from hone.core.monitor import Monitors
from hone.core.part import HOOKS, Connect, Part, SessionSeed
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.tool import Tool, Toolbox
from hone.core.transcript import Transcript
from hone.core.turn import Turn
from hone.core.visible import text_to_path
from hone.core.work import Work
from hone.registry import Feature

ALWAYS = ("holdings", "offer_servers", "fetch_skill")
"""Hooks that a feature answers even if it has nothing else to do."""


class Parts:
    """The parts of one Hone. `owner` is that Hone, the argument of each part's constructor."""

    def __init__(self, owner: object, features: Sequence[Feature], plugins: Sequence[str]) -> None:
        self._owner = owner
        self._features = {feature.name: feature for feature in features if feature.part}
        self._names = plugins
        self._loaded: dict[str, Part] = {}

    @cached_property
    def plugins(self) -> tuple[Part, ...]:
        """Return the parts of the plugins in hone.toml, in its order."""
        return tuple(self._plugin(name) for name in self._names)

    def get(self, name: str) -> Part:
        """Return a feature's part. Raises HoneError if there is no such feature."""
        if name not in self._features:
            raise HoneError(f"This installation of Hone has no {name}.")
        if name not in self._loaded:
            self._loaded[name] = import_object(self._features[name].part)(self._owner)
        return self._loaded[name]

    def having(self, hook: str, folder: Path | None = None) -> Iterator[Part]:
        """Yield the parts that implement a hook: features by their declaration, then plugins. A file in
        `folder` may give a feature something to do. A feature that is off still owns what it has stored, and
        accepts what it is given."""
        if hook not in HOOKS:
            raise ValueError(f"a part has no hook {hook!r}")
        for name, feature in self._features.items():
            if hook in feature.hooks and (hook in ALWAYS or self._is_on(feature, folder)):
                yield self.get(name)
        yield from self.plugins

    async def collect(self, hook: str, *arguments: object) -> list[Any]:
        """Return the values of all parts for a hook that returns several."""
        return [each for part in self.having(hook) for each in await getattr(part, hook)(*arguments)]

    async def settle_skills(self, names: Sequence[str]) -> None:
        """Let every part check skills before they are listed or read."""
        for part in self.having("settle_skills"):
            await part.settle_skills(names)

    async def shared_entries(self) -> Sequence[str]:
        """Return what other people share with the owner."""
        return await self.collect("shared_entries")

    def connect(self, provider: str, *, own: bool) -> Connect | None:
        """Return how to reach a provider of a plugin or, unless hone.toml configures its `own`, of a
        feature."""
        for plugin in self.plugins:
            if provider in (models := plugin.models()):
                return models[provider]
        names = [name for name, feature in self._features.items() if provider in feature.providers]
        return self.get(names[0]).models()[provider] if names and not own else None

    async def seed(self, template: str, toolbox: Toolbox) -> SessionSeed:
        """Return the messages that a conversation begins with. Raises Refused if there are no templates."""
        for part in self.having("seed"):
            if seed := await part.seed(template, toolbox):
                return seed
        raise Refused("This installation of Hone has no templates.")

    def sections(self, folder: Path) -> Iterator[str]:
        """Yield what every part adds to the prompt of a conversation in this folder."""
        for part in self.having("sections"):
            yield from part.sections()
        for part in self.having("folder_sections", folder):
            yield from part.folder_sections(folder)

    def wrap(self, tools: Sequence[Tool], folder: Path, work: Work) -> Sequence[Tool]:
        """Return the tools with what every part does around their calls."""
        for part in self.having("wrap", folder):
            tools = part.wrap(tools, folder, work)
        return tools

    def monitors(self) -> Monitors:
        """Return the monitors of every part."""
        found = [part.monitor() for part in self.having("monitor")]
        return Monitors(monitor for monitor in found if monitor)

    async def ended(self, turn: Turn, header: Header, emit: Emit, *, again: bool) -> str:
        """Return what the model must be told before a turn may end."""
        parts = self.having("ended", text_to_path(header.folder) if header.folder else None)
        return "\n".join(filter(None, [await part.ended(turn, header, emit, again=again) for part in parts]))

    async def news(self, folder: Path, prefix: Prefix, transcript: Transcript) -> str:
        """Return what a conversation must be told before the user's next words."""
        parts = self.having("news", folder)
        return "\n".join(filter(None, [await part.news(folder, prefix, transcript) for part in parts]))

    async def learned(self, event: Learned, folder: str) -> None:
        place = text_to_path(folder or ".")
        for part in self.having("learned", place):
            await part.learned(event, place)

    async def close(self) -> None:
        plugins = self.plugins if "plugins" in vars(self) else ()
        for part in (*self._loaded.values(), *plugins):
            await part.close()

    def _is_on(self, feature: Feature, folder: Path | None = None) -> bool:
        settings = getattr(self._owner, "settings", None)
        if settings is None or (feature.setting and attrgetter(feature.setting)(settings)):
            return True
        places = [place for place in (folder, getattr(self._owner, "home", None)) if place]
        has_file = any(os.path.lexists(f"{place}/{file}") for place in places for file in feature.files)
        return has_file or not (feature.setting or feature.files)

    def _plugin(self, name: str) -> Part:
        try:
            part = import_object(name)(self._owner)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError(f"The plugin {name!r} cannot be loaded: {error}.") from error
        if not isinstance(part, Part):
            raise SettingsError(f"The plugin {name!r} cannot be loaded: it returns no hone.Part.")
        return part
