"""Colours, where there is a terminal that wants them."""

import os
from collections.abc import Mapping
from typing import TextIO

from hone.core.value import dataclass


@dataclass(frozen=True, slots=True)
class Paint:
    """Each method gives the text back as it is unless `colour` is on. Texts are made visible before."""

    colour: bool = False

    def dim(self, text: str) -> str:
        return self._in("2", text)

    def bold(self, text: str) -> str:
        return self._in("1", text)

    def red(self, text: str) -> str:
        return self._in("31", text)

    def green(self, text: str) -> str:
        return self._in("32", text)

    def _in(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.colour and text else text


def paint_for(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Paint:
    plain = bool(environ.get("NO_COLOR")) or environ.get("TERM") == "dumb"
    return Paint(stream.isatty() and not plain)
