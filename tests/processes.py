"""Wait for processes that are not children of the tests."""

import os
import select


def ends(handle: int) -> bool:
    """Whether the process behind a pidfd ends within a minute. Unlike select, poll knows every descriptor."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(60_000))


def has_ended(process: int) -> bool:
    """Whether a process has ended within a minute, and let go of its locks."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return ends(handle)
    finally:
        os.close(handle)
