"""G1: which backend is used, and what counts as this machine."""

import pytest

from hone.core.errors import SettingsError
from hone.core.secrets import mask_password
from hone.features.backends.current import NAMES, BackendChoice, choose, is_remote, must_ask, user_id

WAY = {"key": True, "installed": True, "answers": True}


@pytest.mark.parametrize("wanted", NAMES)
def test_what_is_set_wins_over_a_key_in_the_environment(wanted: str) -> None:
    for key in (False, True):
        found = choose(wanted, NAMES, key=key, installed=key, answers=key)
        assert found == BackendChoice(wanted, "it is set")
    assert not must_ask(wanted, key=True, installed=True)


@pytest.mark.parametrize(
    ("key", "installed", "answers", "name"),
    [
        (False, False, False, "null"),
        (False, True, True, "null"),
        (True, False, False, "null"),
        (True, True, False, "null"),
        (True, True, True, "honcho"),
    ],
)
def test_where_nothing_is_set_honcho_needs_key_sdk_and_answer(
    key: bool, installed: bool, answers: bool, name: str
) -> None:
    assert choose("", NAMES, key=key, installed=installed, answers=answers).name == name
    assert must_ask("", key=key, installed=installed) == (key and installed)


def test_a_name_that_nobody_knows_is_refused_with_those_there_are() -> None:
    with pytest.raises(SettingsError, match="honcho, null, postgres, sqlite"):
        choose("mysql", NAMES, **WAY)
    assert choose("mine", (*NAMES, "mine"), **WAY).name == "mine"


@pytest.mark.parametrize(
    ("url", "remote"),
    [
        ("postgresql:///db", False),
        ("postgresql://me:pw@localhost:5432/db", False),
        ("postgresql://127.0.0.1/db", False),
        ("postgresql://[::1]:5432/db", False),
        ("postgresql://postgres:@/postgres?host=/tmp/socket", False),
        ("host=/run/postgresql dbname=x", False),
        ("dbname=x", False),
        ("postgresql://db.example.com/x", True),
        ("postgresql://localhost@db.example.com/x", True),
        ("postgresql://localhost,db.example.com/x", True),
        ("postgresql://localhost/x?host=db.example.com", True),
        ("host=db.example.com dbname=x", True),
        ("http://localhost:8000", False),
        ("https://api.honcho.dev", True),
        ("http://localhost.evil.test", True),
        ("http://[broken", True),
    ],
)
def test_an_address_is_this_machine_or_it_is_not(url: str, remote: bool) -> None:
    assert is_remote(url, {}) == remote


def test_a_database_without_a_host_is_where_the_environment_says() -> None:
    assert is_remote("dbname=x", {"PGHOST": "db.example.com"})
    assert not is_remote("dbname=x", {"PGHOST": "/run/postgresql"})


@pytest.mark.parametrize(
    ("name", "fit"),
    [("ann", "ann"), ("Ann O'Neil", "Ann-O-Neil"), ("", "owner"), ("名", "owner"), ("a" * 99, "a" * 64)],
)
def test_a_users_name_is_made_fit_for_every_backend(name: str, fit: str) -> None:
    assert user_id(name) == fit


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@db.example.com/x",
        "postgresql://db.example.com/x?user=me&password=hunter2&sslmode=require",
        "host=localhost password=hunter2 dbname=x",
        "host=localhost password = 'hunter2 \\' more' dbname=x",
    ],
)
def test_an_address_is_shown_without_its_password(url: str) -> None:
    assert "hunter2" not in mask_password(url)
    assert ("db.example.com" in mask_password(url)) == ("db.example.com" in url)
