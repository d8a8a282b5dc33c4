"""Judge the head of an HTTP request by its bytes: refuse what two parsers could understand differently.

If a proxy and a server disagree about where a request ends, one client's bytes can pass for another client's
request. So there is one way to write a request here, and nothing is repaired.
"""

from msgspec import Struct

from hone.core.regex import regex

LARGEST_HEAD = 16 * 1024
"""The most bytes of a request line with its headers."""
END = regex(rb"\n\r?\n")
"""The end of a head. A line that ends without CR is found here and refused below."""

_REQUEST = regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40} [\x21-\x7e]{1,8192} HTTP/1\.[01]")
_NAME = regex(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL = regex(rb"[\x00-\x08\x0a-\x1f\x7f]")
_LENGTH = regex(rb"[0-9]{1,15}")


def begins_well(data: bytes | bytearray) -> bool:
    """Tell whether the first byte can be that of a request."""
    return data[:1].isalpha()


class ReadHead(Struct, frozen=True):
    """`fault` says why a head is refused; it is empty if the head is well-formed. `length` is that of the
    body, or None if it is chunked."""

    fault: str = ""
    length: int | None = 0


def read_head(head: bytes) -> ReadHead:
    request, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    if not head.endswith(b"\r\n\r\n") or b"\n" in b"".join((request, *lines)):
        return ReadHead("Every line of a request must end with CR LF.")
    if not _REQUEST.fullmatch(request):
        return ReadHead("The request line cannot be read.")
    fields: dict[bytes, list[bytes]] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if line[:1] in (b" ", b"\t"):
            return ReadHead("A header must not be continued on the next line.")
        if not colon or not _NAME.fullmatch(name) or _CONTROL.search(value):
            return ReadHead("A header cannot be read.")
        fields.setdefault(name.lower(), []).append(value.strip(b" \t"))
    return _framed(fields, request)


def _framed(fields: dict[bytes, list[bytes]], request: bytes) -> ReadHead:
    """Check the headers that say where the request ends and whom it is for."""
    lengths, encodings = fields.get(b"content-length", []), fields.get(b"transfer-encoding", [])
    if lengths and encodings:
        return ReadHead("A request has Content-Length or Transfer-Encoding, not both.")
    if len(lengths) > 1 or not all(map(_LENGTH.fullmatch, lengths)):
        return ReadHead("Content-Length must be one number.")
    is_chunked = [value.lower() for value in encodings] == [b"chunked"] and request.endswith(b"1.1")
    if encodings and not is_chunked:
        return ReadHead("The only Transfer-Encoding here is chunked, given once, in HTTP/1.1.")
    if len(fields.get(b"host", [])) > 1:
        return ReadHead("A request names one Host.")
    return ReadHead(length=None if encodings else int(lengths[0]) if lengths else 0)
