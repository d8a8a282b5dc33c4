"""F6: a backup holds all there is but keys, and a restore trusts nothing that a file says of itself."""

import gzip
import hashlib
import io
import os
import tarfile
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import json
from msgspec.structs import replace

from hone.app import Hone
from hone.cli.main import perform
from hone.core.errors import Corrupt, HoneError, Refused, StoreError
from hone.core.holding import Backup, Holding
from hone.core.ledger import MEMORY, USER, Actor, ChangeQuery, skill
from hone.features.backups import archive, swapping, writing
from hone.features.backups.restoring import RestoredHome, RestoreOptions, restore_backup
from hone.features.backups.settings_text import decides_what_runs, leaves, remove_rules, remove_secrets
from hone.features.backups.staging import MARKER, RESCUED
from hone.features.backups.values import BackupManifest, BackupMember, is_database, is_path
from hone.features.backups.writing import verify_backup, write_backup
from hone.holdings import all_holdings
from hone.knowledge.journal import Add
from hone.knowledge.keeper import OWNER
from hone.runtime.claims import hold_worker
from hone.settings import Settings
from hone.stores.database import MIGRATIONS
from hone.stores.tainted import TaintStore, TrustedContent
from tests.conftest import Figures, Tier
from tests.golden import unpack

OLD = Path(__file__).parents[1] / "fixtures" / "home-beec753.tar.gz"
NOW = datetime(2026, 3, 4, 5, 6, 7, tzinfo=UTC)
KEY = "sk-proj-4fX9q2LmZ8wR7tY3uV6bN1cD5eG0hJ"
COUNTING = skill("adding-up")
NO_OPTIONS = RestoreOptions()
TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
)
REPLACE = RestoreOptions(replace=True)


def quiet(*_: object) -> None:
    return


def holdings() -> Sequence[Holding]:
    return all_holdings(Hone(home="/nowhere", settings=Settings()).parts("holdings"))


@dataclass
class Desk:
    """A home that an older Hone wrote, and a place for backups and restored homes."""

    root: Path
    home: Path = field(init=False)
    file: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home, self.file = self.root / "home", self.root / "a.tgz"
        self.home.mkdir(mode=0o700, parents=True)
        unpack(OLD, self.home)

    def write(self, *, force: bool = False, file: Path | None = None) -> writing.WrittenBackup:
        return write_backup(self.home, holdings(), file or self.file, NOW, quiet, force=force)

    def restore(self, name: str = "new", options: RestoreOptions = NO_OPTIONS) -> RestoredHome:
        return restore_backup(self.file, self.root / name, holdings(), options, NOW, quiet)

    @property
    def lying(self) -> set[str]:
        return {each.name for each in self.root.iterdir()}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "desk")


def contents(home: Path) -> dict[str, bytes]:
    """All files of a home but what SQLite puts beside a database, and databases by their rows."""
    found = {}
    for path in sorted(home.rglob("*")):
        name = str(path.relative_to(home))
        if (path.is_file() and not name.endswith((".db-wal", ".db-shm", ".lock"))) or "evil" in name:
            found[name] = rows(path) if is_database(name) else path.read_bytes()
    return found


def rows(path: Path) -> bytes:
    """Every row, the index of words by its pages, but not `prints`, which knows files by their inodes."""
    with closing(apsw.Connection(str(path))) as connection:
        tables = connection.execute(TABLES)
        names = [name for (name,) in tables.fetchall() if name != "prints"]
        return repr({name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}).encode()


# Hostile files

Members = list[tuple[tarfile.TarInfo, bytes]]


def member(path: str, data: bytes = b"x", *, size: int | None = None, holding: str = "") -> BackupMember:
    return BackupMember(path, len(data) if size is None else size, hashlib.sha256(data).hexdigest(), holding)


def info(name: str, size: int, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.size, made.type, made.linkname = size, kind, link
    return made


def forge(file: Path, members: Sequence[BackupMember], entries: Members, **more: int) -> None:
    manifest = replace(BackupManifest(1, "9", "", 0, tuple(members)), **more)
    data = json.encode(manifest)
    with tarfile.open(file, "w:gz", format=tarfile.GNU_FORMAT) as packed:
        for entry, content in ((info("manifest.json", len(data)), data), *entries):
            packed.addfile(entry, io.BytesIO(content))


def plain(path: str, data: bytes = b"x") -> tuple[tarfile.TarInfo, bytes]:
    return info(f"home/{path}", len(data)), data


RUBBISH = b"no database" * 1_000
Forgery = Callable[[Path], object]
FORGERIES: Mapping[str, Forgery] = {
    "absolute": lambda file: forge(file, [member("/etc/x")], [(info("/etc/x", 1), b"x")]),
    "above": lambda file: forge(file, [member("../outside")], [plain("../outside")]),
    "above, inside": lambda file: forge(
        file, [member("skills/../../outside")], [plain("skills/../../outside")]
    ),
    "a name that is not in the manifest": lambda file: forge(
        file, [member("USER.md")], [plain("../outside")]
    ),
    "a link": lambda file: forge(
        file, [member("skills", b"")], [(info("home/skills", 0, tarfile.SYMTYPE, "/tmp"), b"")]
    ),
    "a hard link": lambda file: forge(
        file, [member("USER.md", b"")], [(info("home/USER.md", 0, tarfile.LNKTYPE, "/etc/passwd"), b"")]
    ),
    "a device": lambda file: forge(
        file, [member("USER.md", b"")], [(info("home/USER.md", 0, tarfile.CHRTYPE), b"")]
    ),
    "a folder": lambda file: forge(
        file, [member("skills", b"")], [(info("home/skills", 0, tarfile.DIRTYPE), b"")]
    ),
    "longer than it says": lambda file: forge(
        file, [member("USER.md", size=1)], [plain("USER.md", b"xx" * 999)]
    ),
    "other bytes": lambda file: forge(file, [member("USER.md", b"y")], [plain("USER.md")]),
    "twice": lambda file: forge(file, [member("USER.md")] * 2, [plain("USER.md")] * 2),
    "a file as a folder": lambda file: forge(
        file, [member("skills/a"), member("skills/a/b")], [plain("skills/a"), plain("skills/a/b")]
    ),
    "one too many": lambda file: forge(file, [member("USER.md")], [plain("USER.md"), plain("MEMORY.md")]),
    "one too few": lambda file: forge(file, [member("USER.md")], []),
    "too large for any disk": lambda file: forge(file, [member("USER.md", size=2**62)], [plain("USER.md")]),
    "of a negative size": lambda file: forge(file, [member("USER.md", size=-1)], [plain("USER.md")]),
    "a name with an escape": lambda file: forge(file, [member("spill/\x1b[2J")], [plain("spill/\x1b[2J")]),
    "no database": lambda file: forge(file, [member("hone.db", RUBBISH)], [plain("hone.db", RUBBISH)]),
    "a newer format": lambda file: forge(file, [], [], format=2),
    "a newer schema": lambda file: forge(file, [], [], schema=len(MIGRATIONS) + 1),
    "a manifest that is no text": lambda file: file.write_bytes(
        gzip.compress(info("manifest.json", 4).tobuf() + b'["\xd7'.ljust(512, b"\0"))
    ),
    "no manifest": lambda file: tarfile.open(file, "w:gz").close(),
    "no archive": lambda file: file.write_bytes(b"hello"),
    "compressed rubbish": lambda file: file.write_bytes(gzip.compress(os.urandom(5_000))),
    "nothing": lambda file: file.write_bytes(b""),
    "a folder in its place": lambda file: file.mkdir(),
    "no file": lambda _: None,
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_hostile_file_is_refused_in_a_sentence_and_nothing_is_written(tmp_path: Path, name: str) -> None:
    file, place = tmp_path / "evil.tgz", tmp_path / "place"
    place.mkdir()
    FORGERIES[name](file)
    with pytest.raises(HoneError) as refused:
        restore_backup(file, place / "home", holdings(), REPLACE, NOW, quiet)
    assert list(place.iterdir()) == []
    assert {each.name for each in tmp_path.iterdir()} <= {"evil.tgz", "place"}
    assert str(refused.value).endswith(".")
    assert "\x1b" not in str(refused.value)
    with pytest.raises(HoneError):
        verify_backup(file, quiet)


def test_a_newer_backup_is_called_newer_not_damaged(tmp_path: Path) -> None:
    for name in ("a newer format", "a newer schema"):
        FORGERIES[name](tmp_path / "a.tgz")
        with pytest.raises(Refused, match=r"newer Hone .* Update Hone"):
            verify_backup(tmp_path / "a.tgz", quiet)


def test_what_a_file_says_of_its_rules_and_keys_does_not_count(tmp_path: Path) -> None:
    names = ("trusted.json", "approved.json", "keys.json", "serve.key", "plugin-data/x", "x.lock", "locks/x")
    members = [member(name, holding="journal and skills") for name in names]
    forge(tmp_path / "a.tgz", members, [plain(name) for name in names])
    for options, there in (
        (NO_OPTIONS, set()),
        (RestoreOptions(True, True), {"trusted.json", "approved.json", "x"}),
    ):
        restored = restore_backup(tmp_path / "a.tgz", tmp_path / "home", holdings(), options, NOW, quiet)
        assert {path.name for path in (tmp_path / "home").rglob("*") if path.is_file()} == there
        assert {path for paths in restored.left.values() for path in paths} >= {"keys.json", "x.lock"}


def test_a_backup_that_was_cut_or_changed_anywhere_is_noticed(
    desk: Desk, tier: Tier, figures: Figures
) -> None:
    desk.write()
    whole, file = desk.file.read_bytes(), desk.file
    unpacked = gzip.decompress(whole)
    silent, tried = list[int](), 0
    for draw in tier.draws(short=60, full=3_000):
        tried += 1
        at = draw.random.randrange(len(whole))
        cut = draw.random.random() < 0.3
        changed = whole[at] ^ (1 << draw.random.randrange(8))
        file.write_bytes(whole[:at] if cut else whole[:at] + bytes([changed]) + whole[at + 1 :])
        try:
            with archive.open_archive(file) as opened:
                opened.read(lambda _: None, quiet)
        except StoreError:
            continue
        # A bit of gzip's header means nothing, and another way to compress the same bytes changes nothing.
        silent += [draw.index] if gzip.decompress(file.read_bytes()) != unpacked else []
    figures.tally(tried, got_in=len(silent), note="cut or changed backups", at=silent)
    assert silent == []


@given(st.text(max_size=40))
def test_a_path_of_a_backup_stays_below_the_home(path: str) -> None:
    if is_path(path):
        assert Path(os.path.normpath(f"/home/{path}")).is_relative_to("/home/")
        assert str(Path("/home", path)) == f"/home/{path}"


# Writing


def test_all_that_a_home_keeps_comes_back_and_no_key_does(desk: Desk) -> None:
    (desk.home / "keys.json").write_text(f'{{"openai": "{KEY}"}}')
    (desk.home / "serve.key").write_text(KEY)
    (desk.home / "spill").mkdir()
    (desk.home / "spill" / ("ü" * 80 + "long" * 20)).write_text("long result")
    for path in ("skills/adding-up/data.db", "quarantine/evil.db", "quarantine/evil.db-wal"):
        (desk.home / path).parent.mkdir(exist_ok=True)
        (desk.home / path).write_text("no database of ours")
    script = desk.home / "skills/adding-up/scripts/run.sh"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    toml = (desk.home / "hone.toml").read_text()
    (desk.home / "hone.toml").write_text(f'# {KEY}\n{toml}\n[providers.mine]\nurl = "http://a:{KEY}@b/"\n')
    written = desk.write()
    assert desk.file.stat().st_mode & 0o777 == 0o600
    assert KEY.encode() not in gzip.decompress(desk.file.read_bytes())
    assert "keys (keys.json)" in written.manifest.left_out
    assert any("providers.mine.url" in note for note in written.notes)
    desk.restore(options=RestoreOptions(with_rules=True))
    before, after = contents(desk.home), contents(desk.root / "new")
    expected = {name for name in before if not name.startswith(("locks/", "keys.json", "serve.key"))}
    assert set(after) == expected
    assert {name for name in expected if before[name] != after[name]} == {"hone.toml"}
    assert tomllib.loads(after["hone.toml"].decode())["tries"] == 1
    modes = {path.stat().st_mode & 0o777 for path in (desk.root / "new").rglob("*") if path != script}
    assert modes == {0o600, 0o700}
    assert os.access(desk.root / "new/skills/adding-up/scripts/run.sh", os.X_OK)
    with closing(apsw.Connection(str(desk.root / "new/hone.db"))) as connection:
        assert connection.pragma("journal_mode") == "wal"
    assert desk.lying == {"home", "a.tgz", "new"}


def test_every_holding_that_a_backup_keeps_is_in_it(desk: Desk) -> None:
    """A place that no test thought of: each gets a file, and each comes back or is left out on purpose."""
    made: dict[str, Backup] = {}
    for each in holdings():
        for place in each.places:
            name = place.replace("*", "x") + ("x" if place.endswith("/") else "")
            path = desk.home / name
            if not path.exists() and ".db" not in name and name != "hone.toml":
                path.parent.mkdir(exist_ok=True)
                path.write_text("[]")
                made[name] = each.backup
    desk.write()
    desk.restore()
    there = {name: Backup.KEPT if (desk.root / "new" / name).exists() else None for name in made}
    assert there == {name: backup if backup is Backup.KEPT else None for name, backup in made.items()}
    assert set(made.values()) == set(Backup)


def test_what_belongs_to_nobody_is_named_and_links_are_not_followed(desk: Desk) -> None:
    (desk.home / "my notes.txt").write_text("mine")
    (desk.home / "history").symlink_to("/etc/passwd")
    (desk.home / "skills" / "elsewhere").symlink_to("/etc")
    os.mkfifo(desk.home / "skills" / "pipe")
    settings = desk.root / "dotfiles.toml"
    (desk.home / "hone.toml").rename(settings)
    (desk.home / "hone.toml").symlink_to(settings)
    written = desk.write()
    assert set(written.manifest.left_out) == {"my notes.txt", "history", "skills/elsewhere", "skills/pipe"}
    desk.restore()
    assert (desk.root / "new/hone.toml").read_bytes() == settings.read_bytes()


def test_a_file_that_is_there_stays_unless_it_is_to_be_replaced(desk: Desk) -> None:
    desk.file.write_text("precious")
    for bad in (desk.file, desk.root, desk.home / "x.tgz", desk.root / "missing" / "x.tgz"):
        with pytest.raises(HoneError, match=str(bad)):
            desk.write(file=bad)
    assert desk.file.read_text() == "precious"
    assert desk.lying == {"home", "a.tgz"}
    desk.write(force=True)
    verify_backup(desk.file, quiet)


async def test_a_home_that_cannot_be_written_is_backed_up_with_what_is_in_its_log(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Hone(home=desk.home, settings=Settings()) as hone:
        await hone.keeper.note([(MEMORY, Add("Still in the log."))], OWNER)
    assert (desk.home / "hone.db-wal").stat().st_size
    (desk.home / ".lock").unlink()
    before = {path: path.stat().st_mtime_ns for path in desk.home.rglob("*")}
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        desk.write()
    assert {path: path.stat().st_mtime_ns for path in desk.home.rglob("*")} == before
    desk.restore()
    async with Hone(home=desk.root / "new", settings=Settings()) as hone:
        assert "Still in the log." in await hone.keeper.text(MEMORY)


def test_a_damaged_database_makes_no_backup(desk: Desk) -> None:
    data = bytearray((desk.home / "hone.db").read_bytes())
    data[8_192:16_384] = os.urandom(8_192)
    (desk.home / "hone.db").write_bytes(data)
    with pytest.raises(Corrupt, match=r"hone\.db is damaged .* hone doctor --repair"):
        desk.write()
    assert desk.lying == {"home"}


def test_without_hard_links_a_backup_is_written_all_the_same(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    desk.write()
    verify_backup(desk.file, quiet)
    assert desk.lying == {"home", "a.tgz"}


# Restoring


def test_a_home_is_replaced_only_if_that_is_said_and_the_former_one_is_kept_with_its_keys(desk: Desk) -> None:
    desk.write()
    (desk.home / "keys.json").write_text(KEY)
    (desk.home / "USER.md").write_text("- Something new.\n")
    before = contents(desk.home)
    with pytest.raises(Refused, match="--replace"):
        desk.restore("home")
    assert contents(desk.home) == before
    for swaps in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not swaps:
                patch.setattr(swapping, "_swap", lambda *_: False)
            restored = desk.restore("home", REPLACE)
        assert restored.kept
        assert (desk.home / "keys.json").read_text() == KEY
        assert "Something new" not in (desk.home / "USER.md").read_text()
        if swaps:
            assert contents(restored.kept) == before
    assert len(desk.lying) == 4


def test_a_former_home_that_cannot_be_renamed_stays_until_the_next_restore(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.write()
    before = contents(desk.home)
    with monkeypatch.context() as patch:
        patch.setattr(swapping, "find_free_name", lambda home, _: home / "missing" / "kept")
        kept = desk.restore("home", REPLACE).kept
    assert kept
    assert contents(kept) == before
    desk.restore("new")
    [rescued] = desk.root.glob(f"{RESCUED}*")
    assert contents(rescued) == before


def test_a_home_that_somebody_uses_is_not_replaced(desk: Desk) -> None:
    desk.write()
    before = contents(desk.home)
    with closing(apsw.Connection(str(desk.home / "hone.db"))) as other:
        other.execute("SELECT count(*) FROM sessions").fetchall()
        with pytest.raises(StoreError, match="Another process uses"):
            desk.restore("home", REPLACE)
    with hold_worker(desk.home), pytest.raises(StoreError, match="hone worker stop"):
        desk.restore("home", REPLACE)
    assert contents(desk.home) == before
    assert desk.lying == {"home", "a.tgz"}


def test_a_damaged_home_can_be_replaced(desk: Desk) -> None:
    desk.write()
    (desk.home / "hone.db").write_bytes(b"no database" * 1_000)
    desk.restore("home", REPLACE)
    assert rows(desk.home / "hone.db")


def test_what_killed_restores_left_is_deleted_or_given_a_name(desk: Desk) -> None:
    desk.write()
    for name, files in (("half", {"a", MARKER}), ("whole", {"hone.db"}), ("empty", set())):
        folder = desk.root / f".hone-restore-{name}"
        folder.mkdir()
        for file in files:
            (folder / file).write_text(name)
    restored = desk.restore()
    assert desk.lying == {"home", "new", "a.tgz", f"{RESCUED}whole"}
    assert any(f"{RESCUED}whole" in note for note in restored.notes)


async def test_an_unpublished_change_is_published_after_a_restore_and_an_edit_is_merged(desk: Desk) -> None:
    """The ledger knows its files by their inodes. A copy has another one and is no edit of the owner's."""
    async with Hone(home=desk.home, settings=Settings()) as hone:
        old = (desk.home / "MEMORY.md").stat()
        before = (desk.home / "MEMORY.md").read_bytes()
        await hone.keeper.note([(MEMORY, Add("Learned before a kill."))], OWNER)
        await hone.keeper.files(COUNTING)
    # As if it had been killed before it could publish: the old file, and the note that it was published.
    with closing(apsw.Connection(str(desk.home / "hone.db"))) as connection:
        os.replace(_written(desk.root / "draft", before, old), desk.home / "MEMORY.md")
        now = (desk.home / "MEMORY.md").stat()
        digest = hashlib.sha256(before).hexdigest()
        values = (digest, str(now.st_ino), str(now.st_mtime_ns))
        connection.execute(
            "UPDATE prints SET digest = ?, inode = ?, modified = ? WHERE path = 'MEMORY.md'", values
        )
    (desk.home / "USER.md").write_text("- Edited by hand.\n")
    desk.write()
    desk.restore()
    async with Hone(home=desk.root / "new", settings=Settings()) as hone:
        assert await hone.keeper.is_in_sync(COUNTING)
        assert "Learned before a kill." in await hone.keeper.text(MEMORY)
        assert "Edited by hand." in await hone.keeper.text(USER)
        made = await hone.ledger.entries(ChangeQuery(target=MEMORY, limit=1))
        assert (made[0].change.kind, made[0].change.author.actor) == ("add", Actor.OWNER)
    assert "Learned before a kill." in (desk.root / "new/MEMORY.md").read_text()


def _written(path: Path, data: bytes, like: os.stat_result) -> Path:
    path.write_bytes(data)
    os.utime(path, ns=(like.st_mtime_ns, like.st_mtime_ns))
    return path


def test_trust_comes_back_only_if_it_is_asked_for(desk: Desk) -> None:
    store = TaintStore(desk.home)
    store.trust([TrustedContent("d1", "/a", "named", "/"), TrustedContent("d2", "/b", "clean", "/")])
    store.close()
    rules = 'plugins = ["evil:part"]\nmode = "full"\n'
    toml = f'{rules}tries = 3\n[permissions]\nallow = ["terminal: *"]\ndeny = ["x: y"]\n'
    (desk.home / "hone.toml").write_text(toml)
    desk.write()
    restored = desk.restore()
    settings = tomllib.loads((desk.root / "new/hone.toml").read_text())
    assert settings == {"tries": 3, "permissions": {"deny": ["x: y"]}}
    assert not (desk.root / "new/trusted.json").exists()
    assert TaintStore(desk.root / "new").trusted() == {"d2": "/b"}
    said = {name for names in restored.left.values() for name in names}
    assert said >= {"plugins", "mode", "permissions.allow", "trusted.json", "provenance.db"}
    desk.restore("second", RestoreOptions(with_rules=True))
    assert (desk.root / "second/hone.toml").read_text() == toml
    assert (desk.root / "second/trusted.json").exists()
    assert set(TaintStore(desk.root / "second").trusted()) == {"d1", "d2"}


def test_what_was_erased_since_a_backup_does_not_come_back_with_it(desk: Desk) -> None:
    home, words = ["--home", str(desk.home)], "Zanzibar zebras"
    (desk.home / "memories.db").unlink()
    assert perform([*home, "memory", "add", f"{words} are blue."]) == 0
    for name in ("history", "spill/1.txt", "spill/2.txt"):
        (desk.home / name).parent.mkdir(exist_ok=True)
        (desk.home / name).write_text(f"+{words} are blue.\n+Rest.\n")
    desk.write()
    assert perform([*home, "erase", "words", words, "--yes"]) == 0
    restored = desk.restore("home", REPLACE)
    assert any("was erased again" in note for note in restored.notes)
    found = [path for path in desk.home.rglob("*") if path.is_file() and words.encode() in path.read_bytes()]
    assert found == []
    assert "are blue." in (desk.home / "MEMORY.md").read_text()
    assert (desk.home / "spill/1.txt").read_text().endswith("are blue.\n+Rest.\n")
    assert perform([*home, "doctor", "--deep"]) == 0


# hone.toml

RULES = """
# my plugins
plugins = [
  "a.b:c",  # the good one
  '''d]''',
]
tries = 2
hooks.before = "rm -rf"
sandbox = { read = ["/a"], network = "ask" }

[projects."/x".sandbox]
network = "allow"
[memory]
url = "here" # plugins = []
"""


def test_rules_become_comments_and_the_rest_stays_to_the_letter() -> None:
    after, names = remove_rules(RULES)
    assert names == ["plugins", "hooks.before", "sandbox.read", "projects./x.sandbox.network"]
    assert tomllib.loads(after) == {
        "tries": 2,
        "memory": {"url": "here"},
        "projects": {"/x": {"sandbox": {}}},
    }
    kept = [line for line in after.splitlines() if not line.startswith("# ")]
    assert kept == [line for line in RULES.splitlines() if line in kept]
    assert remove_rules("a = 1\n") == ("a = 1\n", [])


NAMES = st.sampled_from(
    ["plugins", "hooks", "permissions", "allow", "deny", "mode", "sandbox", "read", "a.b", "x"]
)
VALUES = st.sampled_from(
    ['"full"', '"allow"', "1", '["a",\n"b"]', "'''\n[x]\nplugins = 1\n'''", "{allow = [1]}"]
)
KEYS = st.lists(NAMES, min_size=1, max_size=3).map(lambda names: ".".join(f'"{name}"' for name in names))
LINES = st.one_of(
    st.tuples(KEYS, VALUES).map(" = ".join), KEYS.map(lambda key: f"[{key}]"), st.just("# plugins = 1")
)


@given(st.lists(LINES, max_size=8).map("\n".join))
def test_no_rule_survives_in_any_toml_and_nothing_else_goes(text: str) -> None:
    try:
        values = dict(leaves((), tomllib.loads(text)))
    except tomllib.TOMLDecodeError:
        return
    try:
        after, _ = remove_rules(text)
    except ValueError:
        return  # then the whole file is left out
    left = dict(leaves((), tomllib.loads(after)))
    assert not any(decides_what_runs(key, value) for key, value in left.items())
    statements = {key for key, value in values.items() if not decides_what_runs(key, value)}
    assert {key for key, value in left.items() if value != {}} <= statements


def test_settings_with_secrets_are_left_out_and_others_stay() -> None:
    memory = f'[memory]\nurl = "postgres://a:{KEY}@h/d"\nbackend = "postgres"\n'
    text = f'{memory}[providers.x]\nkey = "{KEY}"\nurl = "http://h"\n'
    after, names = remove_secrets(text)
    assert names == ["memory.url", "providers.x.key"]
    assert tomllib.loads(after) == {
        "memory": {"backend": "postgres"},
        "providers": {"x": {"url": "http://h"}},
    }
    ordinary = '[providers.x]\nkey = "MY_KEY"\nurl = "http://h/v1"\n'
    assert remove_secrets(ordinary) == (ordinary, [])
    assert KEY not in remove_secrets(f'broken = [\nkey = "{KEY}"\n')[0]
