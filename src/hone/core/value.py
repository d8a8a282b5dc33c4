"""Replace fields of a value. Values are frozen `msgspec.Struct`s."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # typed by field for checkers, which treat a Struct like a dataclass here
    from dataclasses import replace
else:
    from msgspec.structs import replace

__all__ = ["replace"]
