"""Identify a client, and what the owner lets it have. Its own claims do not count."""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from hone.core.errors import Refused
from hone.core.ledger import MEMORY, USER, Actor, Author, Target, project
from hone.core.secrets import redact
from hone.core.trust import Trust
from hone.core.visible import one_line, visible
from hone.knowledge.verdicts import LearningMode
from hone.settings import Settings
from hone.settings.sections import McpClientSettings
from hone.web.api_keys import NAME

UNNAMED = "client"
"""The name of a client that the owner has not named."""
REASON = 300
"""The most characters of a client's reason."""


async def admit_all() -> None:
    """Admit every review: a one-person home has no limit."""


class Client(Struct, frozen=True):
    """Another agent. `folder` is the project whose entries it gets. `admit` raises LimitReached if the key's
    user may add no further review."""

    name: str
    folder: str
    access: McpClientSettings = McpClientSettings()
    admit: Callable[[], Awaitable[None]] = admit_all

    @property
    def label(self) -> str:
        """Return its name in the log."""
        return f"mcp/{self.name}"

    @property
    def mode(self) -> LearningMode:
        return LearningMode(self.access.mode)

    @property
    def targets(self) -> dict[str, Target]:
        """Return the parts of the journal that it may read, and propose entries for."""
        own = {"project": project(self.folder)}
        return {**own, "memory": MEMORY, "user": USER} if self.access.user else own

    def author(self, tool: str, reason: str) -> Author:
        """Return it as the author of a proposal. Its words are foreign text."""
        said = one_line(visible(redact(reason)), REASON)
        return Author(Actor.CLIENT, tool=tool, reason=said, trust_floor=Trust.FOREIGN, platform=self.label)

    def explain_setting(self, key: str, value: str) -> str:
        """Return how the owner allows what this client may not do."""
        return f"The owner can allow it: hone config set mcp.clients.{self.name}.{key} {value}"


def find_client(settings: Settings, name: str, folder: str) -> Client:
    """Return the client of this name with its rights from hone.toml. Raises Refused."""
    if not NAME.fullmatch(name):
        raise Refused(
            f"{visible(name)!r} cannot be the name of a client. Use up to 64 letters, digits and . _ -"
        )
    return Client(name, folder, settings.mcp.clients.get(name, McpClientSettings()))


def clear(text: str) -> str:
    """Return a text to send out: without secrets, with hidden characters made visible."""
    return visible(redact(text))
