"""docs/words.md: in order, one meaning each, and words that the code really uses."""

import re

from tests.docs.pages import ROOT

TEXT = (ROOT / "docs" / "words.md").read_text("utf-8")
WORDS = re.findall(r"^- \*\*(\w+)\*\*: .+[^.]\.$", TEXT, re.MULTILINE)
SOURCE = "\n".join(path.read_text("utf-8") for path in (ROOT / "src" / "hone").rglob("*.py"))


def test_every_entry_is_one_line_with_a_word_and_its_meaning_in_order() -> None:
    assert len(WORDS) == len(re.findall(r"^- ", TEXT, re.MULTILINE))
    assert sorted(set(WORDS)) == WORDS


def test_every_word_is_one_that_the_code_uses() -> None:
    assert [
        word for word in WORDS if not re.search(rf"\b{word.lower()}(?:s|ed)?\b", SOURCE, re.IGNORECASE)
    ] == []
