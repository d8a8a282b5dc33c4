"""Bytes from the web as text: which encoding they are in, and letters for whatever does not fit it."""

import codecs
import re

from hone.core.regex import regex

_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEADER = regex(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.ASCII | re.IGNORECASE)
_DECLARED = regex(
    rb"""<meta\b[^>]{0,400}?\bcharset\s*=\s*["']?([\w.:-]{1,40})|<\?xml\b[^>]{0,200}?\bencoding\s*=\s*["']([\w.:-]{1,40})""",
    re.IGNORECASE,
)
_HEAD = 2_048
# Python knows more codecs than the web; some of them unpack, run in squared time or make broken letters.
_ON_THE_WEB = regex(
    r"utf-8|utf-16(-[lb]e)?|ascii|iso8859-\d+|cp\d+|koi8[-_].|mac[-_]\w+|tis-620"
    r"|gb2312|gbk|gb18030|big5\w*|euc_\w+|shift_jis\w*|iso2022_\w+|hz"
)


def decode(data: bytes, content_type: str) -> str:
    """By its byte order mark, else by the header, else by what the document says of itself, else UTF-8."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(name, "replace")
    header = _HEADER.search(content_type)
    declared = None if header else _DECLARED.search(data[:_HEAD])
    if header:
        name = _codec(header[1])
    else:
        # Whoever could read this declaration was not reading UTF-16.
        name = _codec((declared[1] or declared[2]).decode()) if declared else ""
        name = "" if name.startswith("utf-16") else name
    return data.decode(name or "utf-8", "replace")


def _codec(label: str) -> str:
    try:
        name = codecs.lookup(label).name
    except LookupError:
        return ""
    # Browsers read both as the Windows set that contains them.
    if name in {"ascii", "iso8859-1"}:
        return "cp1252"
    return name if _ON_THE_WEB.fullmatch(name) else ""
