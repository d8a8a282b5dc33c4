"""Types of ids that several packages share."""

from typing import NewType

SessionId = NewType("SessionId", str)
