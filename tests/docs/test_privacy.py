"""docs/privacy.md says what is kept where and for how long, and the code agrees."""

from pathlib import Path

from hone.app import Hone
from hone.core.holding import Holding
from hone.holdings import all_holdings

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"


def row(each: Holding) -> str:
    places = ", ".join(f"`{place}`" for place in each.places) or (
        "`hone.db`" if each.tables else "PostgreSQL"
    )
    cells = (each.name, each.keeps, places, each.lasts, "yes" if each.eraser else "no")
    return f"| {' | '.join(cells)} |"


def test_the_page_names_every_holding_with_its_places_and_its_time(tmp_path: Path) -> None:
    rows = [row(each) for each in all_holdings(Hone(home=tmp_path).parts("holdings"))]
    wanted = "\n".join(
        ("| what | what it keeps | where | how long | erased |", "|---|---|---|---|---|", *rows)
    )
    found = PAGE.read_text("utf-8").partition("<!-- holdings -->\n")[2].partition("\n<!-- end -->")[0]
    assert found == wanted
