"""Regular expressions that are compiled at first use.

Startup defines more than a hundred of them, and only about ten are used before the first request.
"""

import re
from typing import Any, AnyStr, cast


class LazyPattern:
    """Takes a method from the expression when it is first asked for, and has it from then on."""

    def __init__(self, text: Any, flags: int) -> None:
        self._defined = text, flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(*self._defined), name)
        setattr(self, name, found)
        return found


def regex(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """For the top of a module. Its faults show when it is used."""
    return cast("re.Pattern[AnyStr]", LazyPattern(text, flags))
