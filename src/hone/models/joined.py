"""The bytes of conversations: a message is encoded once, and a longer one begins with the shorter one."""

from collections.abc import Callable, Sequence
from weakref import WeakKeyDictionary

from hone.core.transcript import Node


class Joined:
    """`encode` gives the bytes of a node; whatever stands before it is fixed, since nodes form a chain."""

    def __init__(self, encode: Callable[[Node, Node | None], bytes]) -> None:
        self._encode = encode
        self._known: WeakKeyDictionary[Node, bytes] = WeakKeyDictionary()

    def join(self, nodes: Sequence[Node], shared: int = 0) -> bytes:
        """All nodes up to the last one. What is known up to a node among the first `shared` stays known, for
        the parent goes on from there; a conversation of its own needs only its latest bytes."""
        if not nodes:
            return b""
        start = len(nodes)
        while start and nodes[start - 1] not in self._known:
            start -= 1
        known = self._known[nodes[start - 1]] if start else b""
        new = (
            self._encode(nodes[index], nodes[index - 1] if index else None)
            for index in range(start, len(nodes))
        )
        whole = b"".join((known, *new))
        if start > shared:
            del self._known[nodes[start - 1]]
        self._known[nodes[-1]] = whole
        return whole
