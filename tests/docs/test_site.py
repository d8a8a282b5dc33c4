"""The site of the documents has every page, once."""

from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def test_the_site_lists_every_page_of_the_documents_once() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    listed = [page for part in site["nav"] for pages in part.values() for page in pages]
    pages = sorted(path.name for path in (ROOT / "docs").glob("*.md"))
    assert sorted(listed) == pages, "each page stands in `nav` of mkdocs.yml"
