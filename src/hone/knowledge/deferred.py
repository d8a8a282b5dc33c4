"""Modules that only a change, a search or a quote needs. Each is imported on first use."""

from importlib import import_module
from typing import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hone.knowledge import admission, cues, evidence, noting, vetting, withdrawn
    from hone.knowledge.skills import similar

__all__ = ["admission", "cues", "evidence", "noting", "similar", "vetting", "withdrawn"]
SKILLS = ("similar",)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    place = "hone.knowledge.skills" if name in SKILLS else "hone.knowledge"
    globals()[name] = module = import_module(f"{place}.{name}")
    return module
