"""A page becomes the text that a person would read, and no broken page costs more than its length."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.tools.web.layout import Readable
from hone.tools.web.readable import readable

URL = "https://site.test/docs/page.html"

PAGE = """<!doctype html>
<html><head><title> Bread &amp;
 butter </title><style>p { color: red }</style><script>if (1 < 2) document.write("</p>gone")</script></head>
<body>
<nav><ul><li><a href="/">Home</a></ul></nav>
<h1>How to <em>bake</em></h1>
<p>Take <a href="flour.html#kinds">some
   flour</a>, <b>not</b> too much; see <a href="#notes">below</a> or <a href="//other.test/x y">elsewhere</a>.
<p>Then run <code>bake --hot</code><br>and wait.
<h2>Steps</h2>
<ol><li>Mix<li>Knead<ul><li>gently<li>twice</ul><li>Bake</ol>
<table><caption>Times</caption><thead><tr><th>Loaf<th>Minutes</thead>
<tr><td><p>small</p></td><td>30</td></tr><tr><td>large<td></table>
<blockquote>Patience.<p>More patience.</blockquote>
<pre class="x"><code><span>def</span> bake(loaf):
    return loaf &lt; 3
</code></pre>
<!-- a comment <p>gone</p> -->
<div hidden>gone</div><div style="display : none">gone<div>gone</div></div><p aria-hidden="true">gone
<p>Again <a href="/docs/flour.html#kinds">the
flour</a> <img alt="a loaf" src="x.png"><a href="javascript:x()">do</a>
<svg><title>gone</title><text>gone</text></svg><button>gone</button><select><option>gone</select>
<hr>5 &lt; 6 &euro; &#x1F35E; &bogus; a<b
>bold</b></body></html>"""

TEXT = """\
# How to bake

Take some flour [1], not too much; see below or elsewhere [2].

Then run `bake --hot`
and wait.

## Steps

1. Mix
2. Knead
  - gently
  - twice
3. Bake

Times
Loaf | Minutes
small | 30
large |\x20

> Patience.

> More patience.

```
def bake(loaf):
    return loaf < 3
```

Again the flour [1] [image: a loaf]do

---

5 < 6 € 🍞 &bogus; abold"""


def test_a_page_is_read_as_a_person_reads_it() -> None:
    page = readable(PAGE, URL)
    assert page.title == "Bread & butter"
    assert page.text == TEXT
    assert page.links == ("https://site.test/docs/flour.html#kinds", "https://other.test/x%20y")
    assert [page.text[at : at + 3] for at, _ in page.marks] == ["[1]", "[2]", "[1]"]


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("no tags at all", "no tags at all"),
        ("a < b and c > d <3", "a < b and c > d <3"),
        ("<p>one<div>two</div>three", "one\n\ntwo\nthree"),
        ("<p hidden>gone<p>kept", "kept"),
        ("<li hidden>gone<li>kept", "- kept"),
        ("kept<!-- never closed <p>gone", "kept"),
        ("kept<p title='never closed>gone", "kept"),
        ("kept<script>never closed</p>gone", "kept"),
        ("kept<script>a</scripture>gone</SCRIPT\n>kept", "keptkept"),
        ("<!--> kept", "kept"),
        ("<?php gone ?>kept</ gone>", "kept"),
        ("a</b></p></i>b", "ab"),
        ("<a href='/x'></a>b", "b"),
        ("<a href='mailto:a@b.test'>mail</a> <a href='data:x'>data</a> <a>bare</a>", "mail data bare"),
        ("<a href='http://[broken'>x</a>", "x"),
        ("<a href=/x><div>block</div></a>next", "block [1]\nnext"),
        ("<base href='http://else.test/a/'><a href=b>x</a>", "x [1]"),
        ("<ul><li></li><li>a</li></ul>", "- a"),
        ("<h2></h2><p>a</p>", "a"),
        ("<pre>a ``` b</pre>", "````\na ``` b\n````"),
        ("<pre>open\n  code", "```\nopen\n  code\n```"),
        ("<pre><div>a</div><div>b<br>c</div></pre>", "```\na\nb\nc\n```"),
        ("<p>a</p>\n\n<p>\n</p><p> b </p>", "a\n\nb"),
        ("a<br><br><br>b", "a\n\nb"),
        ("<b>a </b> b<i> c</i>", "a b c"),
        ("one\u00a0two\x00\x1b[31m", "one two[31m"),
        ("<div class=a class=b ===>a</div =>", "a"),
        ("&#55296;&#" + "9" * 5_000 + ";", "&#55296;&#" + "9" * 5_000 + ";"),
        ("&#55296;", "\ufffd"),
    ],
)
def test_what_is_broken_or_empty_is_read_as_browsers_read_it(html: str, text: str) -> None:
    assert readable(html, URL).text == text


@pytest.mark.parametrize(
    "unit",
    [
        *(
            "<!--",
            "<a x='",
            "<a\n",
            "<a a=b ",
            "</a ",
            "<![CDATA[",
            "<?",
            "<b>",
            "<p>",
            "</p>",
            "<",
            "&#9",
            "&",
        ),
        *("<blockquote>a", "<ul><li>a", "<ul><b><li></li>", "<table><tr><td>a", "<td>a", "<pre>", "<code>"),
        *(
            "<a href=x>a</a>",
            "<a href=//[>a",
            "<title>",
            "<script>",
            "<a style='display ",
            "<p hidden>",
            "` <pre>",
        ),
    ],
)
@pytest.mark.timeout(20)
def test_a_hostile_page_costs_no_more_than_its_length(unit: str) -> None:
    """What needs time in the square of the length, as html.parser does, runs into the deadline."""
    size = 256 * 1024
    page = readable(unit * (size // len(unit)), URL)
    assert len(page.text) <= 4 * size


@pytest.mark.timeout(20)
def test_unlike_end_tags_do_not_make_deep_pages_slow() -> None:
    assert readable("<b>" * 100_000 + "</i>" * 100_000 + "a", URL).text == "a"
    assert readable("<ul>" + "<b>" * 100_000 + "<li></li>" * 50_000 + "a", URL).text == "a"


TAGS = "<p> </p> <li> <ul> </ul> <a\thref=/x> <a\thref='/y\tz'> </a> <td> <tr> </table>"
MORE = "<pre> </pre> <code> </code> <h1> <br> <div\thidden> </div> text <!-- --> < > ' \" &amp; & \ud800"
RAW = "<script> </script> <title> </title>"
pieces = st.sampled_from([*TAGS.split(" "), *MORE.split(" "), *RAW.split(" "), " two words ", "\n"])


@given(st.lists(pieces, max_size=60).map("".join))
def test_any_soup_of_tags_gives_text_whose_links_are_where_it_says(soup: str) -> None:
    page = readable(soup, URL)
    assert all(page.text.startswith(f"[{number}]", at) for at, number in page.marks)
    assert all(at < later for (at, _), (later, _) in pairwise(page.marks))
    assert {number for _, number in page.marks} <= set(range(1, len(page.links) + 1))
    assert page.text == page.text.lstrip("\n")


@given(
    st.lists(st.sampled_from(["word ", "line\n", "x" * 50, *(f"<a href=/{n}>go</a> " for n in range(40))])),
    st.integers(100, 400),
)
def test_pages_fit_in_their_room_name_their_links_and_leave_nothing_out(parts: list[str], room: int) -> None:
    whole = readable("".join(parts), URL)
    start, seen = 0, ""
    while start < len(whole.text):
        text, urls, end = whole.page(start, room)
        assert end > start
        assert len(text) + len(urls) <= room
        mentioned = dict.fromkeys(number for at, number in whole.marks if start <= at < end)
        assert urls == "".join(f"\n[{number}] {whole.links[number - 1]}" for number in mentioned)
        assert whole.text[start:end].rstrip() == text
        seen += whole.text[start:end]
        start = end
    assert seen == whole.text


def test_a_page_is_cut_between_lines_or_words_where_it_can_be() -> None:
    assert Readable("first line\nsecond line").page(0, 15) == ("first line", "", 11)
    assert Readable("one two three").page(0, 9) == ("one two", "", 8)
    assert Readable("unbreakable").page(0, 4) == ("unbr", "", 4)
