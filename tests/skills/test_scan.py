"""D8: what is worth a look in a file is named; what is ordinary is not."""

import pytest

from hone.knowledge.skills import bundled
from hone.knowledge.skills.facts import split_facts, touches_scripts
from hone.knowledge.skills.scan import BINARY, oddities
from tests.conftest import Figures

ORDINARY = {
    "SKILL.md": "# Steps\nRun `make test`, then see https://example.org/docs.\n\n```sh\ngit log\n```\n",
    "references/fa.md": "می‌خواهم 👩‍👩‍👧 naïve façade, 日本語, Ω",
    "scripts/count.py": "import json\nimport sys\n\nprint(len(json.load(sys.stdin)))\n",
    "scripts/count.sh": '#!/bin/sh\nset -eu\nfor file in "$@"; do wc -l "$file"; done\n',
    "templates/letter.md": "Dear {{ name }},\n\n<!-- x -->\nYours\n",
    "assets/style.css": "body { color: #333; }\n",
}


def test_ordinary_files_and_the_skills_that_come_with_hone_have_nothing_odd(figures: Figures) -> None:
    files = [(path, text.encode()) for path, text in ORDINARY.items()]
    for name in bundled.names():
        files += split_facts(bundled.files(name))[0].items()
    odd = {
        path: found
        for path, data in files
        if (found := oddities(path, data, runs=path in touches_scripts({}, {path: data})))
    }
    figures(f"{len(files)} harmless files looked through, {len(odd)} with oddities")
    assert odd == {}


@pytest.mark.parametrize(
    ("text", "oddity"),
    [
        ("x = 1\nimport requests\n", "line 2: reaches the network"),
        ("curl -s https://collector.test/\n", "line 1: reaches the network"),
        ("const r = await fetch(url)\n", "line 1: reaches the network"),
        ("import subprocess\n", "line 1: runs other programs"),
        ("\n\neval(input())\n", "line 3: runs other programs"),
        ("cat ~/.ssh/id_rsa\n", "line 1: reads what is private"),
        ("print(os.environ)\n", "line 1: reads what is private"),
        ("sudo make install\n", "line 1: changes the machine"),
        ("echo aGk= | base64 -d\n", "line 1: hides what it does"),
        ("data = '" + "\\x41" * 20 + "'\n", "line 1: hides what it does"),
    ],
)
def test_a_script_is_told_by_what_it_does_and_in_which_line(text: str, oddity: str) -> None:
    assert oddity in oddities("scripts/x", text.encode(), runs=True)
    assert not [
        each for each in oddities("references/x.md", text.encode(), runs=False) if each.startswith("line")
    ]


@pytest.mark.parametrize(
    "data", [bytes(range(256)), b"\0" * 100, b"\x89PNG\r\n\x1a\n" + bytes(range(128, 255)) * 9]
)
def test_what_is_no_text_is_said_to_be_none(data: bytes) -> None:
    assert oddities("assets/x.bin", data, runs=False) == (BINARY,)


def test_nothing_makes_it_fail() -> None:
    for data in (
        b"",
        b"\xff\xfe",
        b"\xff\xfe\0",
        b"\0",
        b"\xff" * 9,
        "\ud800".encode("utf-16", "surrogatepass"),
    ):
        assert isinstance(oddities("x", data, runs=True), tuple)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["\n", " ", "<!--", "![", "<img ", "rm -r", "https://", "`", "\\x4"])
def test_no_text_takes_long(piece: str) -> None:
    """What goes over it again and again would take minutes, and the limit would end it."""
    oddities("scripts/x.sh", (piece * 2**16)[: 2**16].encode(), runs=True)
