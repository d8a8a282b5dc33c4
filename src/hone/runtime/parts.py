"""Load the parts of features and plugins by name, each when one of its hooks is first needed."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import attrgetter

from hone.core.errors import HoneError, Refused, SettingsError
from hone.core.loading import import_object
from hone.core.part import HOOKS, Connect, Part, SessionSeed
from hone.core.tool import Toolbox
from hone.registry import Feature


class Parts:
    """The parts of one Hone. `owner` is that Hone: every maker of a part is called with it."""

    def __init__(self, owner: object, features: Sequence[Feature], plugins: Sequence[str]) -> None:
        self._owner = owner
        self._features = {feature.name: feature for feature in features if feature.part}
        self._names = plugins
        self._loaded: dict[str, Part] = {}

    @cached_property
    def plugins(self) -> tuple[Part, ...]:
        """The parts of the plugins that hone.toml names, in its order."""
        return tuple(self._plugin(name) for name in self._names)

    def get(self, name: str) -> Part:
        """Return a feature's part. Raises HoneError if there is no such feature."""
        if name not in self._features:
            raise HoneError(f"This installation of Hone has no {name}.")
        if name not in self._loaded:
            self._loaded[name] = import_object(self._features[name].part)(self._owner)
        return self._loaded[name]

    def having(self, hook: str) -> Iterator[Part]:
        """Yield the parts that implement a hook: features by their declaration, then plugins."""
        if hook not in HOOKS:
            raise ValueError(f"a part has no hook {hook!r}")
        for name, feature in self._features.items():
            if hook in feature.hooks and self._is_on(feature):
                yield self.get(name)
        yield from self.plugins

    def connect(self, provider: str, *, own: bool) -> Connect | None:
        """Return how to reach a provider of a plugin or, unless hone.toml has its `own`, of a feature."""
        for plugin in self.plugins:
            if provider in (models := plugin.models()):
                return models[provider]
        names = [name for name, feature in self._features.items() if provider in feature.providers]
        return self.get(names[0]).models()[provider] if names and not own else None

    async def seed(self, template: str, toolbox: Toolbox) -> SessionSeed:
        """Return what a conversation begins with. Raises Refused if there are no templates."""
        for part in self.having("seed"):
            if seed := await part.seed(template, toolbox):
                return seed
        raise Refused("This installation of Hone has no templates.")

    async def close(self) -> None:
        plugins = self.plugins if "plugins" in vars(self) else ()
        for part in (*self._loaded.values(), *plugins):
            await part.close()

    def _is_on(self, feature: Feature) -> bool:
        settings = getattr(self._owner, "settings", None)
        return not feature.setting or settings is None or bool(attrgetter(feature.setting)(settings))

    def _plugin(self, name: str) -> Part:
        try:
            part = import_object(name)(self._owner)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError(f"The plugin {name!r} cannot be loaded: {error}.") from error
        if not isinstance(part, Part):
            raise SettingsError(f"The plugin {name!r} cannot be loaded: it returns no hone.Part.")
        return part
