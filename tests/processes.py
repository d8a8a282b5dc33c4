"""Wait for processes that are not children of the tests."""

import select


def ends(handle: int) -> bool:
    """Whether the process behind a pidfd ends within a minute. Unlike select, poll knows every descriptor."""
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    return bool(poll.poll(60_000))
