"""I1: docs/configuration.md lists every setting. `WRITE_GOLDENS=1` writes it anew."""

from tests.docs.configuration_page import page
from tests.docs.pages import ROOT
from tests.golden import WRITE

PAGE = ROOT / "docs" / "configuration.md"


def test_the_page_lists_every_setting_as_the_code_has_it() -> None:
    if WRITE:
        PAGE.write_text(page(), "utf-8")
    assert PAGE.read_text("utf-8") == page(), "WRITE_GOLDENS=1 pytest tests/docs/test_configuration_page.py"


def test_every_setting_has_a_sentence() -> None:
    rows = [line.split(" | ") for line in page().splitlines() if line.startswith("| `")]
    assert [row[0] for row in rows if not row[-1].strip("| ")] == []
