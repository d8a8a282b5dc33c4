"""The sender of a request: a person, whose words are the owner's, or a program, whose words are foreign."""

import hashlib
from contextlib import suppress

from msgspec import Struct

from hone.core.errors import Missing
from hone.core.messages import Role
from hone.core.ports import Header, Sessions
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.web.api_keys import ApiKey, KeyKind

HALF = 8
ANCESTORS = 50
"""How many branches of branches to follow to their beginning."""


class ApiCaller(Struct, frozen=True):
    """`tag` is the digest of the API key; the owner's own key and cookie have none. `login` is the browser
    that sends the request."""

    name: str
    kind: KeyKind
    tag: str = ""
    login: str = ""

    @property
    def is_program(self) -> bool:
        return self.kind is not KeyKind.PERSON

    def session_id(self, seed: str) -> str:
        """Return an id for a conversation of this program that no other key can derive. The same seed gives
        the same id."""
        half = _hash(seed)[:HALF]
        return half + _hash(f"{self.tag} {half}")[:HALF]

    def began(self, id: str) -> bool:
        return len(id) == 2 * HALF and id[HALF:] == _hash(f"{self.tag} {id[:HALF]}")[:HALF]


OWNER = ApiCaller("owner", KeyKind.PERSON)
NOBODY = ApiCaller("nobody", KeyKind.PROGRAM)


def caller(key: ApiKey) -> ApiCaller:
    return ApiCaller(key.name, key.kind, key.digest)


async def may_continue(who: ApiCaller, header: Header, transcript: Transcript, sessions: Sessions) -> bool:
    """Tell whether a caller may continue a conversation. A person may continue any; a program only its own,
    as long as no person has spoken in it."""
    if not who.is_program:
        return True
    if not is_foreign(transcript):
        return False
    with suppress(Missing):
        for _ in range(ANCESTORS):
            if who.began(header.id):
                return True
            if header.parent is None:
                return False
            header = (await sessions.load(header.parent)).header
    return False


def is_foreign(transcript: Transcript) -> bool:
    said = (node.trust for node in transcript.nodes if node.message.role is Role.USER)
    return all(trust is Trust.FOREIGN for trust in said)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
