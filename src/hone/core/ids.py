"""Names of what several rooms speak of."""

from typing import NewType

SessionId = NewType("SessionId", str)
