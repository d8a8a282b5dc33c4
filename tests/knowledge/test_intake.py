"""C1, architecture section 3: what a file means is decided by its bytes and by which file it is."""

import pytest

from hone.core.ledger import Print
from hone.knowledge.intake import Finding, Place, look

OLD, NOW, HAND = "old", "now", "hand"


def file(digest: str, inode: int = 1) -> Print:
    return Print(digest, inode, 5)


@pytest.mark.parametrize(
    ("place", "finding"),
    [
        (Place(None, None, None), Finding.FINE),
        (Place(NOW, file(NOW), file(NOW)), Finding.FINE),
        (Place(NOW, file(NOW), file(NOW, inode=2)), Finding.MOVED),
        (Place(None, file(OLD), None), Finding.MOVED),
        (Place(NOW, None, None), Finding.STALE),
        (Place(NOW, file(OLD), file(OLD)), Finding.STALE),
        (Place(NOW, file(NOW), None), Finding.MISSING),
        (Place(NOW, file(NOW), file(HAND)), Finding.EDITED),
        (Place(NOW, file(OLD), file(HAND)), Finding.EDITED),
        (Place(None, None, file(HAND)), Finding.EDITED),
        (Place(NOW, file(NOW), file(OLD, inode=2)), Finding.EDITED),
        (Place(NOW, file(OLD), file(OLD, inode=2)), Finding.EDITED),
    ],
)
def test_each_case(place: Place, finding: Finding) -> None:
    assert look(place) is finding
