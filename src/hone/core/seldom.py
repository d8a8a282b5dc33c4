"""Standard library modules that a first answer does not need. Each is loaded at first use.

Together they would take about 4% of the time from `hone run` to the first request.
"""

from importlib import import_module
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    import difflib
    import shlex
    import shutil
    import tempfile
    import tomllib

__all__ = ["difflib", "shlex", "shutil", "tempfile", "tomllib"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = module = import_module(name)
    return module
