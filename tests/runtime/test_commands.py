"""Lines are read as bash reads them: a plain command runs as it was read, and none in a line is left out."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hone.runtime.commands import simple_commands
from hone.runtime.shell_parser import DEEPEST
from hone.runtime.simple import Simple
from tests.conftest import Figures, Tier, requires

PLAIN = {
    "git status": [("git", "status")],
    "git -C sub commit -m 'a; b' --amend": [("git", "-C", "sub", "commit", "-m", "a; b", "--amend")],
    r'\git "st"at' "us": [("git", "status")],
    "git show stash@{0} HEAD~2 HEAD^ a#b x=y": [
        ("git", "show", "stash@{0}", "HEAD~2", "HEAD^", "a#b", "x=y")
    ],
    "a && b || c; d | e & f\ng # h": [("a",), ("b",), ("c",), ("d",), ("e",), ("f",), ("g",)],
    "if [ -f a ]; then b; fi": [("[", "-f", "a", "]"), ("b",)],
    "{ a; }; (b c); ! d; time -p e": [("a",), ("b", "c"), ("d",), ("e",)],
    "git sta\\\ntus \\\n --short": [("git", "status", "--short")],
    "sudo -u bob ls": [("sudo", "-u", "bob", "ls")],
    "bash -c 'git status'": [("bash", "-c", "git status"), ("git", "status")],
    "xargs -n 1 git add": [("xargs", "-n", "1", "git", "add")],
}
NOT_PLAIN = [
    *("git $x", 'git "$x"', "git ${x}", "git $(pwd)", "git `pwd`", "git *", "git a?", "git [ab]", "git ~"),
    *("git {a,b}", "git {1..3}", "git $'a\\x62'", "git $((1+1))", "X=1 git status", "X=1", "git > x"),
    *(
        "git 2>&1",
        "git < x",
        "git << E\nE",
        "git <<< x",
        "git <(pwd)",
        "git &> x",
        "a\\\n=b git",
        "git $\\\n-",
    ),
    *("git 'status", 'git "status', "git `status", "git status)", "(git status", "git() { rm; }; git status"),
    *(
        "function git { rm; }; git status",
        "git status\r",
        "git\x0bstatus",
        "git status <<E\nno end",
        "git \\",
    ),
    *("((git))", "a=(git status)", "for x in a; do git $x; done"),
]


def words(text: str) -> list[tuple[str, ...]]:
    return [each.argv for each in simple_commands(text)]


@pytest.mark.parametrize("text", PLAIN)
def test_a_plain_command_has_the_words_that_bash_runs(text: str) -> None:
    assert words(text) == PLAIN[text]
    assert all(each.plain for each in simple_commands(text))


@pytest.mark.parametrize("text", NOT_PLAIN)
def test_what_bash_expands_assigns_or_redirects_is_not_plain(text: str) -> None:
    found = list(simple_commands(text))
    assert found
    assert not all(each.plain for each in found)


def test_a_command_tells_what_stands_around_its_words() -> None:
    [first, *_, last] = simple_commands('A=1 cmd "$(inner)" 2>&1 < in > out; (cd x && git status)')
    assert first == Simple("inner", (), argv=("inner",), scope=(1,))
    command = next(each for each in simple_commands("A=1 cmd `inner` < in 2> out") if each.program == "cmd")
    assert (command.assignments, command.reads, command.targets) == (("A=1",), ("in",), ("out",))
    assert (command.substitutions, command.inlined) == (("`inner`",), ("inner",))
    assert command.redirected
    assert not command.literal
    assert (last.argv, last.plain, len(last.scope)) == (("git", "status"), True, 1)


LOG = r"""
command_not_found_handle() { local row; printf -v row '%s\1' "$@"; printf '%s\2' "$row" >&9; }
exec 9>"$1"; ulimit -t 2; eval "$2"; wait
"""
"""Runs a text where no program exists, and writes down the words of each command that bash looks for."""
FRAGMENTS = [
    *("a", "b", "c", " ", "\t", "\n", ";", "&&", "||", "|", "&", "'a b'", '"a b"', "'", '"', "\\", "$", "`"),
    *("{", "}", "{}", "{a,b}", "{a}", ",", "..", "[", "]", "*", "?", "~", "#", "=", "(", ")", "<", ">", "!"),
    *("$'", "<<", "[[", "]]", " if ", " then ", " fi ", " time ", " do ", " case ", " in ", " function "),
    *(" { ", " } ", " ! ", "\r", "\\\n", "-", "@{0}", "+", "^", "a=", '"$a"', "$(a)", "`a`", "é", "\xa0"),
    *("\u2028", "$((", " ((", "))", "&>", "2>", "\\;", " #", "a:~", "coproc ", "|\n", "\x0b", '$"a"'),
]


def ran(bash: str, text: str, folder: Path) -> list[tuple[str, ...]]:
    """What a text in the background says after the end goes to a log that nobody reads any more."""
    log, place = folder / f"log-{os.urandom(6).hex()}", folder / "place"
    place.mkdir(exist_ok=True)
    command = [bash, "-c", LOG, bash, str(log), text]
    quiet = subprocess.DEVNULL
    subprocess.run(
        command,
        check=False,
        cwd=place,
        env={"PATH": "/nowhere"},
        stdin=quiet,
        stdout=quiet,
        stderr=quiet,
        timeout=30,
    )
    rows = log.read_bytes().decode("utf-8", "replace").split("\2")[:-1]
    log.unlink()
    return [tuple(row.split("\1")[:-1]) for row in rows]


def test_bash_runs_nothing_in_plain_lines_but_the_words_that_were_read(
    tmp_path: Path, tier: Tier, figures: Figures
) -> None:
    bash = requires("bash")
    wrong, tried = [], 0
    for draw in tier.draws(short=800, full=60_000):
        chance = draw.random
        pieces = [
            chance.choice(FRAGMENTS) if chance.random() < 0.5 else chance.choice("abc ;")
            for _ in range(chance.randint(1, 9))
        ]
        text = "".join(pieces)
        found = list(simple_commands(text))
        if not found or not all(each.plain for each in found):
            continue
        tried += 1
        read = {each.argv for each in found}
        other = [row for row in ran(bash, text, tmp_path) if row not in read]
        if other or any((tmp_path / "place").iterdir()):
            wrong.append(draw.index)
    figures.tally(tried, got_in=len(wrong), note="plain lines, run by bash", at=wrong)
    assert wrong == []
    assert tried > 100


SHELL_TEXT = st.lists(
    st.sampled_from([*FRAGMENTS, "sh -c ", "eval ", "find . -exec ", "xargs ", "echo ", "<<E\n", "E\n", "${"])
).map("".join)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=80) | SHELL_TEXT)
def test_nothing_raises_and_every_command_says_where_it_comes_from(text: str) -> None:
    for each in simple_commands(text):
        assert each.argv or each.assignments or each.redirected or each.unread
        assert each.plain <= each.literal


@pytest.mark.parametrize(
    "piece",
    [
        *(
            "x",
            "$(",
            "`",
            "sh ",
            "eval ",
            "find -exec ",
            "a(){",
            "A=1 ",
            "A=$A$A;",
            "sudo ",
            "(",
            "'",
            '"',
            ";",
        ),
        *("\\\n", "<(curl ", "sh -c '", "$(sh -c ", "x|", "> ", "((", "$((", "$((a) ", "<<a ", "${", "[[ "),
        *(
            "{a,",
            "`\\`",
            "echo a>b;sh b;",
            "xargs -I{} ",
            "find {} -exec {}{}{} + ",
            'eval "',
            "for a in $a;",
        ),
        *("set -- $@;", "echo $(echo ", "cat <<-a\n\t", "$'", "\r", "{a..", "#", "bash <<<", "sh -c $'"),
    ],
)
def test_a_long_line_is_read_in_the_end_and_what_is_too_deep_is_said(piece: str) -> None:
    list(simple_commands((piece * 20_000)[:20_000]))


def test_what_is_nested_too_deeply_is_named_as_unread() -> None:
    deep = "$(" * (DEEPEST + 1) + "rm" + ")" * (DEEPEST + 1)
    assert any(each.unread for each in simple_commands(f"echo {deep}"))
    quoted = "rm -rf x"
    for _ in range(6):
        quoted = f"sh -c {subprocess.list2cmdline([quoted])}"
    assert any(each.unread for each in simple_commands(quoted))
    assert not any(each.unread for each in simple_commands("echo $(echo $(echo a))"))
