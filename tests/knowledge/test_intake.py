"""C1, architecture section 3: what a file means is decided by its bytes and by which file it is."""

import pytest

from hone.core.ledger import PublishedFile
from hone.knowledge.file_sync import FileFacts, FileState, compare

OLD, NOW, HAND = "old", "now", "hand"


def file(digest: str, inode: int = 1) -> PublishedFile:
    return PublishedFile(digest, inode, 5)


@pytest.mark.parametrize(
    ("place", "finding"),
    [
        (FileFacts(None, None, None), FileState.FINE),
        (FileFacts(NOW, file(NOW), file(NOW)), FileState.FINE),
        (FileFacts(NOW, file(NOW), file(NOW, inode=2)), FileState.MOVED),
        (FileFacts(None, file(OLD), None), FileState.MOVED),
        (FileFacts(NOW, None, None), FileState.STALE),
        (FileFacts(NOW, file(OLD), file(OLD)), FileState.STALE),
        (FileFacts(NOW, file(NOW), None), FileState.MISSING),
        (FileFacts(NOW, file(NOW), file(HAND)), FileState.EDITED),
        (FileFacts(NOW, file(OLD), file(HAND)), FileState.EDITED),
        (FileFacts(None, None, file(HAND)), FileState.EDITED),
        (FileFacts(NOW, file(NOW), file(OLD, inode=2)), FileState.EDITED),
        (FileFacts(NOW, file(OLD), file(OLD, inode=2)), FileState.EDITED),
    ],
)
def test_each_case(place: FileFacts, finding: FileState) -> None:
    assert compare(place) is finding
