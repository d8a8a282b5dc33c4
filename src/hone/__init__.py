"""Hone: an agent that learns from its own conversations, shows what it learned and lets you undo it."""

TYPE_CHECKING = False  # checkers take it for typing's, which would be a third of `hone --version`
if TYPE_CHECKING:
    from hone.app import Hone as Hone

__version__ = "0.1.0"
__all__ = ["Hone", "__version__"]


def __getattr__(name: str) -> object:
    """`Hone` is loaded when it is asked for: `hone --version` should not pay for an agent."""
    if name == "Hone":
        from hone.app import Hone

        return Hone
    raise AttributeError(f"module 'hone' has no attribute {name!r}")
