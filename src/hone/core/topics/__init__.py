"""Topics of reviews. Each module in this package defines one `TOPIC`; no other code names it."""

from importlib import import_module
from pkgutil import iter_modules

from hone.core.jobs import Topic, Topics

TOPICS: tuple[Topic, ...] = tuple(
    import_module(f"{__name__}.{module.name}").TOPIC for module in iter_modules(__path__)
)
"""In the order of their names, which is the order of the parts of a question."""
NAMES: Topics = frozenset(topic.name for topic in TOPICS)
