"""Markdown as models write it, and as they should not: for laws over any text."""

from hypothesis import strategies as st

LINES = st.sampled_from(
    [
        *("", "", "   ", "words", "**bold", "more** words", "# Title", "===", "---", "- - -", "> quoted"),
        *("- one", "- two", "* other", "  more of it", "    deep", "\ttab", "    - sub", "     - deeper"),
        *("   - askew", "1. first", "2. second", "10) tenth", "0. none", "-", "1.", "  ", "```", "```py"),
        *("~~~", "  ```", "    ```", "| a | b |", "|---|--:|", "| 1 | 2 |", "a | b", "--|--", "|"),
        *(
            "<div>",
            "</div>",
            "[x]: http://x",
            "[x]",
            "\\",
            "&#27;[2J",
            "日本語 | 漢字",
            "\x1b[2J",
            "a\rb",
            "\r",
        ),
        *("[bold]x[/bold]", "[a](http://b 'c')", "![d](e)", "&#x202e;", "`code`", "a  ", ":smile:", "~~s~~"),
    ]
)
TEXTS = st.one_of(
    st.lists(LINES, max_size=14).map("\n".join), st.text(max_size=60), st.text("-*1.`|>#= \n\t\r\\ab")
)
