"""Report suspicious content in a file from elsewhere. The report advises a person; it is not a boundary."""

import re
from collections.abc import Iterator

from hone.core.regex import regex
from hone.core.screen import screen

PROGRAM, PACKED, BINARY = "a program for a machine, not text", "an archive of its own", "not text"
COMMENT, AFAR = "a comment that a reader does not see", "text far out of sight"
REMOTE = "loads something from elsewhere when it is shown"

_MAGIC = {
    **{b"\x7fELF": PROGRAM, b"MZ": PROGRAM, b"\xcf\xfa\xed\xfe": PROGRAM, b"\xfe\xed\xfa": PROGRAM},
    **{b"\xca\xfe\xba\xbe": PROGRAM, b"\0asm": PROGRAM, b"PK\x03\x04": PACKED, b"\x1f\x8b": PACKED},
    **{b"7z\xbc\xaf": PACKED, b"BZh": PACKED, b"\xfd7zXZ": PACKED},
}
_MARKS = {
    **{b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"},
}
_DECLARED = regex(r"coding[:=][ \t]*([-\w.]+)")
_ORDINARY = regex(r"utf-?8(?:-sig)?|ascii|us-ascii|latin-?1|iso-8859-1", re.IGNORECASE)

_CODE = {
    "reaches the network": (
        r"\b(?:curl|wget|nc|ncat|netcat|telnet|scp|sftp|rsync|ftp)\s+[-\w\"'$/]",
        r"\b(?:import|from)\s+(?:requests|urllib\d?|http|socket|aiohttp|httpx2?|ftplib|smtplib|paramiko|websockets?)\b",
        r"\b(?:fetch|XMLHttpRequest|WebSocket|axios(?:\.\w+)?)\s*\(|require\(['\"](?:node:)?(?:https?|net|dgram)['\"]",
        r"\b(?:Invoke-WebRequest|Invoke-RestMethod|Net\.WebClient|iwr|irm)\b|/dev/(?:tcp|udp)/|\bopen-uri\b",
        r"https?://(?!(?:localhost|127\.0\.0\.1|example\.(?:com|org))\b)[\w.-]+",
    ),
    "runs other programs": (
        r"\bsubprocess\b|\bos\.(?:system|popen|exec\w+|spawn\w+)\b|\bpty\.spawn\b|child_process|\bProcess\.Start\b",
        r"\b(?:eval|exec)\s*\(|\b(?:eval|source)\s+[\"'$(`]|`[^`\n]+`|\bIEX\b",
    ),
    "reads what is private": (
        r"~?/?\.(?:ssh|aws|gnupg|kube|netrc|docker/config)\b|\bid_(?:rsa|ed25519|ecdsa)\b|/etc/(?:shadow|passwd)",
        r"\b(?:os\.environ|process\.env|printenv)\b|\benv\s*\||\.env\b|[Kk]eychain|[Cc]ookies\.sqlite|wallet\.dat",
        r"\.hone\b|HONE_HOME|_API_KEY\b",
    ),
    "hides what it does": (
        r"\b(?:b64decode|base64\s+(?:-d|-D|--decode)|fromhex|unhexlify|atob|FromBase64String|codecs\.decode)\b",
        r"(?:\\x[0-9a-fA-F]{2}){16,}|\b[A-Za-z0-9+/]{200,}={0,2}|\bmarshal\.loads\b|\bpickle\.loads?\b",
        r"\bchr\(\d+\)(?:\s*[+.]\s*chr\(\d+\)){5,}",
    ),
    "changes the machine": (
        r"\bsudo\b|\bcrontab\b|\bsystemctl\b|/etc/(?:cron|profile|ld\.so)|\.(?:bashrc|zshrc|profile|bash_profile)\b",
        r"\brm\s+-[a-zA-Z]{0,9}r[a-zA-Z]{0,9}f|\bchmod\s+(?:\+s|[0-7]?7[0-7]{2})\b|\bauthorized_keys\b|\bLaunchAgents\b",
    ),
}
_PROSE = {
    COMMENT: (r"^\[(?:comment|//|_)\]:[ \t]{0,9}#[ \t]{0,9}\(.{12}",),
    AFAR: (
        r"(?<![ \t])[ \t]{120,}\S",
        r"(?:(?<=\S\n)|\A)(?:[ \t]*\n){40}[ \t\n]*\S",
        r"display:\s{0,9}none|font-size:\s{0,9}0|color:\s{0,9}white",
    ),
    REMOTE: (
        r"!\[[^\]\n]{0,200}\]\(\s{0,9}https?://",
        r"<(?:img|iframe|script|link|object)\b[^>]{0,300}https?://",
    ),
}
"""No pattern here reads a text more than once: a file from elsewhere may try to slow it down."""
_UNSEEN = 12
"""The fewest characters of a suspicious comment."""


def oddities(path: str, data: bytes, *, runs: bool) -> tuple[str, ...]:
    """Return suspicious content, each with the line of its first occurrence, if it has lines. `runs`: it is a
    script."""
    return tuple(dict.fromkeys(_found(data, runs=runs or not path.lower().endswith((".md", ".txt")))))


def _found(data: bytes, *, runs: bool) -> Iterator[str]:
    if kind := next((kind for mark, kind in _MAGIC.items() if data.startswith(mark)), ""):
        yield kind
        return
    text, encoding = _text(data)
    if text is None:
        yield BINARY
        return
    if encoding:
        yield f"written in {encoding}, which a plain look does not show"
    declared = _DECLARED.search("\n".join(text.split("\n")[:2])) if runs else None
    if declared and not _ORDINARY.fullmatch(declared[1]):
        yield f"says that it is written in {declared[1]}"
    yield from screen(text).flags
    patterns = {**(_CODE if runs else {}), **_PROSE}
    for oddity, forms in patterns.items():
        places = [found.start() for form in forms if (found := re.search(form, text, re.MULTILINE))]
        if oddity == COMMENT and (at := _comment(text)) is not None:
            places.append(at)
        if places:
            yield f"line {text.count(chr(10), 0, min(places)) + 1}: {oddity}"


def _comment(text: str) -> int | None:
    """Return where the first long comment begins."""
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start)
        if end < 0:
            return None
        if end - start - 4 >= _UNSEEN:
            return start
        start = text.find("<!--", end)
    return None


def _text(data: bytes) -> tuple[str | None, str]:
    """Return the text as a reader decodes it, and its encoding, if that is unusual."""
    for mark, encoding in _MARKS.items():
        if data.startswith(mark):
            return _decoded(data, encoding), encoding.upper()
    if b"\0" in data[:2_000]:
        for encoding in ("utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"):
            text = _decoded(data, encoding)
            if text is not None and text[:200].isascii() and text[:200].replace("\n", " ").isprintable():
                return text, encoding[:-3].upper()
        return None, ""
    text = _decoded(data, "utf-8")
    if text is not None:
        return text, ""
    letters = sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in data)
    return (data.decode("latin-1"), "LATIN-1 or the like") if letters > 0.7 * len(data) else (None, "")


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        return None
