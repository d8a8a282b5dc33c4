"""The headers that every answer carries: no foreign script, no frame, no cache, no guessing of types."""

from collections.abc import Mapping

from starlette.types import Message, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


def sealed(send: Send) -> Send:
    """Every answer carries the headers, whoever made it; a file of the page may say how long it keeps."""

    async def pass_on(message: Message) -> None:
        if message["type"] == "http.response.start":
            said = [(name.lower(), value) for name, value in message.get("headers", ())]
            kept = {name for name, _ in said}
            own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*said, *(each for each in own if each[0] not in kept)]}
        await send(message)

    return pass_on
