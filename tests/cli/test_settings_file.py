"""What Hone writes into hone.toml means what it should, and what the owner wrote there stays."""

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hone.cli.config import template
from hone.cli.settings_file import Value, change_text, write_settings
from hone.core.errors import SettingsError

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NAMES = st.sampled_from(["mine", "my server", "a.b", "ü", "prices"])
LINES = [
    *(
        "# a comment",
        "",
        'model = "a/b"  # mine',
        "model = 'x#y'",
        "calls = 7",
        'fallback = """a\nmodel = 3\n"""',
    ),
    *(
        "[sandbox]",
        "[ sandbox ]  # note",
        'read = ["~/x", # y\n  "~/z"]',
        "[providers.mine]",
        '[providers."mine"]',
    ),
    *('url = "http://a"', 'url="b" # c', "[[plugins]]", 'providers.mine.url = "c"', '#model = ""', "# [x]"),
    *('providers = { mine = { url = "x" } }', "  key = 'K'", '[prices."a/b"]', "input = 1.0", "\ttries = 2"),
]
REST = '\n# end\n[prices."a/b"]\ninput = 1\noutput = 2\n'


def is_valid(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


TEXTS = st.builds(
    lambda rows, ending, last: ending.join(rows).replace("\n", ending) + ending * last,
    st.lists(st.sampled_from(LINES), max_size=8, unique=True),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
).filter(is_valid)


@given(text=TEXTS, model=WORDS, name=NAMES, url=WORDS, local=st.booleans())
def test_a_change_means_what_it_should_and_every_other_line_stays(
    text: str, model: str, name: str, url: str, local: bool
) -> None:
    changes: dict[tuple[str, ...], Value] = {("model",): model}
    changes |= {("providers", name, "url"): url, ("providers", name, "local"): local}
    try:
        changed = change_text(text, changes)
    except ValueError:
        return  # it is refused, and nothing is written
    expected = tomllib.loads(text)
    expected["model"] = model
    expected.setdefault("providers", {}).setdefault(name, {}).update(url=url, local=local)
    assert tomllib.loads(changed) == expected
    left = iter(changed.split("\n"))
    kept = [line for line in text.split("\n") if not line.lstrip().startswith(("model", "url"))]
    assert [line for line in kept if line.rstrip("\r") not in (each.rstrip("\r") for each in left)] == []
    assert change_text(changed, changes) == changed


@given(text=TEXTS, path=st.sampled_from([("model",), ("sandbox", "read"), ("providers", "mine", "url")]))
def test_a_key_that_is_removed_is_gone_and_every_other_value_stays(text: str, path: tuple[str, ...]) -> None:
    expected = tomllib.loads(text)
    values = expected
    for name in path[:-1]:
        values = values.get(name, {})
    values.pop(path[-1], None)
    try:
        assert tomllib.loads(change_text(text, {path: None})) == expected
    except ValueError:
        return  # it is refused, and nothing is written


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'model = "a/b"\n\n[providers.mine]\nurl = "c"\n'),
        ("calls = 3", 'model = "a/b"\ncalls = 3\n\n[providers.mine]\nurl = "c"\n'),
        (
            f'# my own\nmodel = "x" # why\n[providers.mine] # here\nkey = "K"\n{REST}',
            f'# my own\nmodel = "a/b" # why\n[providers.mine] # here\nkey = "K"\nurl = "c"\n{REST}',
        ),
    ],
)
def test_these_files_become_those(before: str, after: str) -> None:
    assert change_text(before, {("model",): "a/b", ("providers", "mine", "url"): "c"}) == after


def test_the_file_that_init_writes_gets_the_model_below_its_explanation() -> None:
    rows = change_text(template(), {("model",): "a/b"}).splitlines()
    at = rows.index('model = "a/b"')
    assert rows[at - 1] == '#model = ""'
    assert [row for row in rows if row != 'model = "a/b"'] == template().splitlines()


@pytest.mark.parametrize(
    "text",
    [
        'providers = { mine = { url = "x" } }\n',
        'model = """\na"""\n',
        'providers.mine.url = "x"\n',
        '[providers]\nmine = { url = "x" }\n',
    ],
)
def test_what_cannot_be_changed_safely_is_left_and_said(text: str, tmp_path: Path) -> None:
    file = tmp_path / "hone.toml"
    file.write_text(text)
    with pytest.raises(SettingsError) as error:
        write_settings(file, {("model",): "a/b", ("providers", "mine", "url"): "c"})
    assert file.read_text() == text
    assert 'model = "a/b"\n\n[providers.mine]\nurl = "c"' in str(error.value)


def test_a_link_to_the_owners_dotfiles_stays_one(tmp_path: Path) -> None:
    (tmp_path / "dotfiles").mkdir()
    real, file = tmp_path / "dotfiles" / "hone.toml", tmp_path / "hone.toml"
    real.write_text("# mine\n")
    file.symlink_to(real)
    write_settings(file, {("model",): "a/b"})
    assert (file.is_symlink(), real.read_text()) == (True, 'model = "a/b"\n# mine\n')


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Write this into it yourself"):
        write_settings(tmp_path, {("model",): "a/b"})
