"""The prefix: what a provider caches before the first message. Fixed when a session starts, reused on
resume."""

import json
from typing import Any, Self

from msgspec import Struct
from msgspec.structs import force_setattr

from hone.core.messages import canonical, digest


def find_source(model: str) -> str:
    """Return the source of a model, given as provider/name. For a router that names its models vendor/model,
    the vendor is part of it."""
    return model.rpartition("/")[0]


class Prefix(Struct, frozen=True):
    """`tools` and `sampling` are canonical JSON text, so that equal prefixes are equal bytes."""

    model: str
    system: str
    tools: tuple[str, ...] = ()
    sampling: str = "{}"
    digest: str = ""

    def __post_init__(self) -> None:
        force_setattr(self, "digest", digest(self.encode()))

    @property
    def provider(self) -> str:
        return self.model.partition("/")[0]

    @property
    def name(self) -> str:
        """Return the model's name without the provider."""
        return self.model.partition("/")[2]

    @property
    def settings(self) -> dict[str, Any]:
        settings: dict[str, Any] = json.loads(self.sampling)
        return settings

    def encode(self) -> bytes:
        return canonical([self.model, self.system, self.tools, self.sampling]).encode()

    @classmethod
    def decode(cls, data: bytes) -> Self:
        model, system, tools, sampling = json.loads(data)
        return cls(model, system, tuple(tools), sampling)
