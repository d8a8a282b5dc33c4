"""Markdown on the screen: nothing unseen, nothing that steers, code as it was written."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from hone.cli.terminal.blocks import MarkdownBlock, cut
from hone.cli.terminal.markdown import lines
from hone.core.visible import visible
from tests.cli.terminal.marked import TEXTS

RICH = """\
Some *soft*, **hard** and `code` words,
[a link](http://x.y) and <b>no</b> [bold]markup[/bold].

1. one
1. two
   with more

   | a | b |
   |---|--:|
   | x | 12 |
- other
  - inner

> quoted
> - item

```python
def f(x):
	return "日本語"  # a comment
```
"""


def drawn(text: str, width: int = 80) -> list[str]:
    """Block after block, without the empty lines between them."""
    return [line.plain for block in cut(visible(text)) for line in lines(block, width)]


def test_a_document_looks_like_this() -> None:
    assert drawn(RICH) == [
        "Some soft, hard and code words,",
        "a link (http://x.y) and <b>no</b> [bold]markup[/bold].",
        "1. one",
        "2. two",
        "   with more",
        "",
        "   a    b",
        "   ──────",
        "   x   12",
        "• other",
        "  • inner",
        "│ quoted",
        "│ • item",
        "def f(x):",
        '\treturn "日本語"  # a comment',
    ]


@given(TEXTS, st.integers(10, 120))
def test_nothing_on_the_screen_steers_the_terminal_or_leads_anywhere(text: str, width: int) -> None:
    for block in cut(visible(text)):
        for line in lines(block, width):
            assert line.plain == visible(line.plain)
            assert "\n" not in line.plain
            assert not any(getattr(span.style, "link", None) for span in line.spans)


@given(
    st.lists(
        st.sampled_from(["w{}", "- w{}", "2. w{}", "# w{}", "> w{}", "    w{}", "```\nw{}\n```", "*w{}*"])
    )
)
def test_every_word_is_seen_once(shapes: list[str]) -> None:
    text = "\n\n".join(shape.format(number) for number, shape in enumerate(shapes))
    seen = re.findall(r"w\d+", "\n".join(drawn(text)))
    assert seen == [f"w{number}" for number in range(len(shapes))]


@given(TEXTS, st.integers(40, 120))
def test_the_blocks_one_by_one_look_like_the_whole(text: str, width: int) -> None:
    text = visible(text)
    whole = [line.plain for line in lines(MarkdownBlock(text), width)]
    assert [line for line in whole if line] == [line for line in drawn(text, width) if line]


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
    st.sampled_from(["py", "js", "sh", "x", ""]),
)
def test_code_is_copied_as_it_was_written(code: str, language: str) -> None:
    written = visible(code).replace("`", "'")
    shown = [line.plain for line in lines(MarkdownBlock(f"```{language}\n{written}\n```\n"), 20)]
    assert shown == written.split("\n")


@pytest.mark.parametrize("width", [20, 40, 80])
def test_prose_and_lists_stay_within_the_screen_also_in_wide_letters(width: int) -> None:
    text = "- 日本語の文章はとても長いので折り返されます and averyverylongwordwithoutend\n\n> 漢字\n\n" * 3
    for block in cut(text):
        assert max(cell_len(line.plain) for line in lines(block, width)) <= width


def test_a_file_name_beside_a_fence_is_shown_and_a_language_is_not() -> None:
    assert drawn("```python src/a.py\nx\n```") == ["python src/a.py", "x"]
    assert drawn("```mermaid\nx\n```") == ["x"]
