"""C1, architecture section 3: what a file means is decided by its bytes and by which file it is."""

import pytest

from hone.core.ledger import PublishedFile
from hone.knowledge.file_states import FileState, compare

OLD, NOW, HAND = "old", "now", "hand"


def file(digest: str, inode: int = 1) -> PublishedFile:
    return PublishedFile(digest, inode, 5)


@pytest.mark.parametrize(
    ("place", "finding"),
    [
        ((None, None, None), FileState.FINE),
        ((NOW, file(NOW), file(NOW)), FileState.FINE),
        ((NOW, file(NOW), file(NOW, inode=2)), FileState.MOVED),
        ((None, file(OLD), None), FileState.MOVED),
        ((NOW, None, None), FileState.STALE),
        ((NOW, file(OLD), file(OLD)), FileState.STALE),
        ((NOW, file(NOW), None), FileState.MISSING),
        ((NOW, file(NOW), file(HAND)), FileState.EDITED),
        ((NOW, file(OLD), file(HAND)), FileState.EDITED),
        ((None, None, file(HAND)), FileState.EDITED),
        ((NOW, file(NOW), file(OLD, inode=2)), FileState.EDITED),
        ((NOW, file(OLD), file(OLD, inode=2)), FileState.EDITED),
    ],
)
def test_each_case(
    place: tuple[str | None, PublishedFile | None, PublishedFile | None], finding: FileState
) -> None:
    assert compare(*place) is finding
