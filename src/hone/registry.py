"""The table of features: strings only, so that reading it loads nothing.

Deleting a feature means deleting its folder below `features/` and its entry here.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Feature(NamedTuple):
    """One feature by name. `hooks` are the methods of `Part` that its part implements, `providers` the model
    providers it brings; nothing else loads it."""

    name: str
    commands: Mapping[str, tuple[str, str]] = {}
    operations: str = ""
    part: str = ""
    hooks: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()


FEATURES = (
    Feature(
        "backends",
        part="hone.features.backends.part:MemoryPart",
        hooks=("ready", "tools", "remind", "attend", "notify", "finish", "close"),
    ),
    Feature(
        "curator",
        operations="hone.features.curator.operations",
        part="hone.features.curator.part:CuratorPart",
        hooks=("tend",),
    ),
    Feature("imports"),
    Feature(
        "local_models",
        part="hone.features.local_models.part:LocalModelsPart",
        hooks=("models", "close"),
        providers=("local",),
    ),
    Feature(
        "templates",
        part="hone.features.templates.part:TemplatesPart",
        hooks=("seed", "resumed", "leftovers", "checks"),
    ),
    Feature(
        "experiments",
        part="hone.features.experiments.part:ExperimentsPart",
        hooks=("findings", "leftovers"),
    ),
    Feature("traces"),
)
