"""L1: docs/permissions.md shows what the code decides. `WRITE_GOLDENS=1` writes the table anew."""

import re

from tests.docs.pages import ROOT
from tests.docs.permission_table import table
from tests.golden import WRITE

PAGE = ROOT / "docs" / "permissions.md"
_TABLE = re.compile(r"^\| \| \| plan \| ask \| auto \| full \|\n(?:\|.*\n)+", re.MULTILINE)


def test_the_table_says_what_the_code_decides() -> None:
    text = PAGE.read_text("utf-8")
    assert len(_TABLE.findall(text)) == 1
    if WRITE:
        PAGE.write_text(_TABLE.sub(lambda _: f"{table()}\n", text), "utf-8")
    assert f"{table()}\n" in PAGE.read_text("utf-8"), "make it anew: WRITE_GOLDENS=1 pytest tests/docs"
