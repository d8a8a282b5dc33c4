"""What a tool is: a declared surface and one method. A failed tool is a value, not an exception."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from hone.core.messages import ToolCall
from hone.core.permit import Effect
from hone.core.transcript import Transcript


class Kind(StrEnum):
    """The class of work a tool stands for."""

    CODE = "code"
    FILE = "file"
    RESEARCH = "research"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Outcome:
    """`text` is what the model reads."""

    text: str
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Surface:
    """What a tool declares of itself. `schema` is canonical JSON: name, description, parameters."""

    name: str
    schema: str
    effects: frozenset[Effect]
    readonly: bool = False
    kind: Kind = Kind.OTHER


class Tool(Protocol):
    @property
    def surface(self) -> Surface: ...

    async def run(self, call: ToolCall, transcript: Transcript) -> Outcome:
        """`transcript` ends with the reply that made the call."""
        ...


Toolbox = Mapping[str, Tool]
