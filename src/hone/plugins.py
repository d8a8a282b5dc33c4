"""What a plugin can add. hone.toml names it as `package.module:function`; it is called with a Registry."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hone.core.backend import Backend
from hone.core.errors import SettingsError
from hone.core.loading import import_object
from hone.core.model import Model
from hone.core.tool import Tool


@dataclass(slots=True)
class Registry:
    """`models` are makers by provider name: `--model name/rest` calls the maker with the rest. `backends` are
    makers of memory backends by name: `memory.backend` calls the one it names."""

    tools: list[Tool] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    models: dict[str, Callable[[str], Model]] = field(default_factory=dict)
    backends: dict[str, Callable[[], Backend]] = field(default_factory=dict)


def load(names: Iterable[str]) -> Registry:
    registry = Registry()
    for name in names:
        try:
            register = import_object(name)
        except (ImportError, AttributeError, ValueError) as error:
            raise SettingsError(f"The plugin {name!r} cannot be loaded: {error}.") from error
        register(registry)
    return registry
