"""Import an object by name, so that parts and plugins are loaded only when they are needed."""

from importlib import import_module
from typing import Any


def import_object(name: str) -> Any:
    """Import what "module:object" names. Raises ImportError, AttributeError or ValueError."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
