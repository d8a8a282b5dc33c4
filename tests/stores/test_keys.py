"""Keys of providers: what is stored comes back from either place, and an unreadable file is no empty one."""

import stat
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.errors import Missing, Refused, StoreError
from hone.stores.keys import FILE, ProviderKeys, check_key, examine_keys

NOW = datetime(2026, 11, 16, tzinfo=UTC)
NAMES = st.sampled_from(["A_KEY", "B_KEY", "C_KEY"])
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
STEPS = st.lists(
    st.one_of(st.tuples(st.just("set"), NAMES, VALUES), st.tuples(st.just("remove"), NAMES, st.just(""))),
    max_size=8,
)


class MemoryKeyring:
    """A keyring that is open, or `locked`."""

    priority = 5

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        self._check()
        return self.kept.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self._check()
        self.kept[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        self._check()
        del self.kept[service, username]

    def _check(self) -> None:
        if self.locked:
            raise RuntimeError("sk-must-not-be-repeated")


@pytest.mark.parametrize("place", ["file", "keyring"])
@settings(max_examples=25)
@given(steps=STEPS)
def test_what_is_stored_comes_back_and_what_is_removed_is_gone(
    place: str, steps: list[tuple[str, str, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    home, keyring = tmp_path_factory.mktemp("keys"), MemoryKeyring()
    keys = ProviderKeys(home, lambda: keyring if place == "keyring" else None)
    expected: dict[str, str] = {}
    for number, (act, name, value) in enumerate(steps):
        if act == "set":
            assert keys.set(name, value, NOW.replace(microsecond=number)).place == place
            expected[name] = value
        elif name in expected:
            keys.remove(name)
            del expected[name]
        else:
            with pytest.raises(Missing):
                keys.remove(name)
    fresh = ProviderKeys(home, lambda: keyring)
    for each in (keys, fresh):
        assert {name: each.get(name) for name in each.list()} == expected
        assert sorted(each.values()) == sorted(expected.values())
    assert sorted(keyring.kept.values()) == (sorted(expected.values()) if place == "keyring" else [])
    if expected:
        assert stat.S_IMODE((home / FILE).stat().st_mode) == 0o600


def test_a_key_moves_between_the_places_and_stays_in_one(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    keys = ProviderKeys(tmp_path, lambda: keyring)
    keys.set("A_KEY", "sk-first", NOW)
    assert b"sk-first" not in (tmp_path / FILE).read_bytes()
    keys.set("A_KEY", "sk-second", NOW, in_file=True)
    assert (keyring.kept, keys.get("A_KEY")) == ({}, "sk-second")
    keys.set("A_KEY", "sk-third", NOW)
    assert b"sk-second" not in (tmp_path / FILE).read_bytes()
    assert keys.get("A_KEY") == "sk-third"


def test_homes_do_not_share_a_keyring(tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    one, two = (ProviderKeys(tmp_path / name, lambda: keyring) for name in ("one", "two"))
    one.set("A_KEY", "sk-one", NOW)
    two.set("A_KEY", "sk-two", NOW)
    two.remove("A_KEY")
    assert (one.get("A_KEY"), two.get("A_KEY")) == ("sk-one", "")


@pytest.mark.parametrize("fault", ["locked", "gone", "emptied"])
def test_a_keyring_that_fails_says_what_to_do_and_repeats_nothing(fault: str, tmp_path: Path) -> None:
    keyring = MemoryKeyring()
    ProviderKeys(tmp_path, lambda: keyring).set("A_KEY", "sk-one", NOW)
    keyring.locked = fault == "locked"
    if fault == "emptied":
        keyring.kept.clear()
    keys = ProviderKeys(tmp_path, lambda: None if fault == "gone" else keyring)
    with pytest.raises(StoreError) as error:
        keys.get("A_KEY")
    assert "hone keys set" in str(error.value)
    assert "must-not" not in str(error.value)
    assert keys.values() == ()
    assert list(keys.list()) == ["A_KEY"]


@pytest.mark.parametrize("damage", [b"", b"{", b'{"keys": 3}', b"\xff\xfe"])
def test_a_damaged_file_is_an_error_and_is_not_written_over(damage: bytes, tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(damage)
    keys = ProviderKeys(tmp_path, lambda: None)
    for act in (
        keys.list,
        lambda: keys.get("A_KEY"),
        lambda: keys.set("A_KEY", "sk-one", NOW),
        lambda: keys.remove("A_KEY"),
    ):
        with pytest.raises(StoreError, match="cannot be read"):
            act()
    assert (tmp_path / FILE).read_bytes() == damage
    assert (examine_keys(tmp_path) or (True, ""))[0] is False


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text('{"keys": {}}')
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError):
        ProviderKeys(tmp_path, lambda: None).list()


def test_writers_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    names = [f"KEY_{number}" for number in range(24)]

    def put(name: str) -> None:
        ProviderKeys(tmp_path, lambda: None).set(name, f"sk-{name}", NOW)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, names))
    assert {name: ProviderKeys(tmp_path).get(name) for name in names} == {
        name: f"sk-{name}" for name in names
    }


@pytest.mark.parametrize("text", ["", "  \n", "two words", "a\nb", "schlüssel", "x\x00", "y" * 5_000])
def test_what_is_no_key_is_refused_and_not_repeated(text: str, tmp_path: Path) -> None:
    with pytest.raises(Refused) as error:
        ProviderKeys(tmp_path, lambda: None).set("A_KEY", text, NOW)
    assert not text.strip() or text not in str(error.value)
    assert not (tmp_path / FILE).exists()
    assert check_key(" sk-1\n") == "sk-1"


def test_a_key_is_in_no_repr(tmp_path: Path) -> None:
    key = ProviderKeys(tmp_path, lambda: None).set("A_KEY", "sk-one", NOW)
    assert "sk-one" not in repr(key)


def test_the_doctor_notices_a_file_that_others_can_read(tmp_path: Path) -> None:
    assert examine_keys(tmp_path) is None
    ProviderKeys(tmp_path, lambda: None).set("A_KEY", "sk-one", NOW)
    assert examine_keys(tmp_path) == (True, "keys: 1 stored; hone keys list")
    (tmp_path / FILE).chmod(0o644)
    fine, line = examine_keys(tmp_path) or (True, "")
    assert (fine, "chmod 600" in line) == (False, True)
