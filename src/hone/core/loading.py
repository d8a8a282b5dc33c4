"""Objects by name, for what is imported only when it is needed: tables of parts, and plugins."""

from importlib import import_module
from typing import Any


def import_object(name: str) -> Any:
    """Import what "module:object" names. Raises ImportError, AttributeError or ValueError."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute)
