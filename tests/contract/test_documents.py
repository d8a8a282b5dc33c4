"""J1: documents are read and replaced as a whole, by one owner, on every store; some belong to a machine."""

import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.documents import (
    CONSENT,
    EXPERIMENTS,
    GATE,
    KINDS,
    NEW,
    PAUSES,
    QUEUED,
    RULES,
    SPILL,
    TEMPLATES,
    DocumentKind,
    Documents,
    all_documents,
    change,
)
from hone.core.errors import Conflict, StoreError
from hone.core.messages import digest
from hone.files.documents import FileDocuments
from hone.stores.postgres.database import PostgresDatabase
from hone.stores.postgres.documents import PostgresDocuments
from tests.contract.kinds import new_owner, shared_pool
from tests.reference.documents import InMemoryDocuments

NAMES = {
    TEMPLATES: ("a.json", "b-2.json"),
    EXPERIMENTS: ("one/task.json", "one/0f.jsonl", "two/task.json"),
    GATE: ("held-out/0f.jsonl",),
    PAUSES: ("curator-paused",),
    QUEUED: ("1.json", "20261118-0f/000001.jsonl"),
    SPILL: ("read_file-0123456789abcdef.txt",),
    RULES: ("approved.json", "trusted.json"),
    CONSENT: ("permissions-everywhere.json",),
}


def on_postgres(owner: str = "", machine: str = "this machine") -> PostgresDocuments:
    return PostgresDocuments(PostgresDatabase(shared_pool(), owner or new_owner()), machine)


@pytest.fixture(params=("inmemory", "files", "postgres"))
def documents(request: pytest.FixtureRequest, tmp_path: Path) -> Documents:
    made: dict[str, Callable[[], Documents]] = {
        "inmemory": InMemoryDocuments,
        "files": lambda: FileDocuments(tmp_path),
        "postgres": on_postgres,
    }
    return made[str(request.param)]()


def test_a_document_is_read_as_it_was_written(documents: Documents) -> None:
    data = b"\x00\xff bytes, not text\n"
    for kind, names in NAMES.items():
        assert documents.names(kind) == []
        for name in names:
            assert documents.read(kind, name) is None
            documents.write(kind, name, data + name.encode())
        assert documents.names(kind) == sorted(names)
        assert [documents.read(kind, name) for name in names] == [data + name.encode() for name in names]
    found = [(kind, name) for kind, name, _ in all_documents(documents)]
    assert found == [(kind, name) for kind in KINDS for name in sorted(NAMES[kind])]


def test_a_document_replaces_only_what_its_writer_has_seen(documents: Documents) -> None:
    documents.write(TEMPLATES, "a.json", b"1", NEW)
    for over in (NEW, digest(b"another"), ""):
        with pytest.raises(Conflict):
            documents.write(TEMPLATES, "a.json", b"2", over)
    assert documents.read(TEMPLATES, "a.json") == b"1"
    documents.write(TEMPLATES, "a.json", b"2", digest(b"1"))
    documents.write(TEMPLATES, "a.json", b"3")
    assert documents.read(TEMPLATES, "a.json") == b"3"
    with pytest.raises(Conflict):
        documents.write(TEMPLATES, "b.json", b"2", digest(b"1"))
    assert documents.names(TEMPLATES) == ["a.json"]


def test_a_document_is_deleted_once(documents: Documents) -> None:
    documents.write(EXPERIMENTS, "one/task.json", b"1")
    assert documents.delete(EXPERIMENTS, "one/task.json")
    assert not documents.delete(EXPERIMENTS, "one/task.json")
    assert documents.read(EXPERIMENTS, "one/task.json") is None
    assert documents.names(EXPERIMENTS) == []
    documents.write(EXPERIMENTS, "one/task.json", b"2", NEW)


def test_what_is_older_than_a_time_goes(documents: Documents) -> None:
    now = datetime.now(UTC)
    documents.write(SPILL, "a.txt", b"1")
    documents.write(TEMPLATES, "a.json", b"1")
    assert documents.expire(SPILL, now - timedelta(days=1)) == 0
    assert documents.expire(SPILL, now + timedelta(days=1)) == 1
    assert documents.names(SPILL) == []
    assert documents.names(TEMPLATES) == ["a.json"]


def test_changes_at_the_same_time_are_all_kept(documents: Documents) -> None:
    if isinstance(documents, InMemoryDocuments):
        pytest.skip("the reference is used by one thread")
    errors: list[BaseException] = []

    def add(number: int) -> None:
        try:
            for _ in range(5):
                change(documents, RULES, "trusted.json", lambda data: (data or b"") + b"%d\n" % number)
        except BaseException as error:  # noqa: BLE001  told below
            errors.append(error)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert not errors
    lines = (documents.read(RULES, "trusted.json") or b"").splitlines()
    assert sorted(lines) == sorted(b"%d" % number for number in range(4) for _ in range(5))


def test_a_change_that_changes_nothing_writes_nothing(documents: Documents) -> None:
    change(documents, TEMPLATES, "a.json", lambda data: data)
    assert documents.names(TEMPLATES) == []
    change(documents, TEMPLATES, "a.json", lambda data: b"1")
    change(documents, TEMPLATES, "a.json", lambda data: None)
    assert documents.read(TEMPLATES, "a.json") == b"1"


STEPS = st.tuples(
    st.sampled_from(("write", "new", "over", "delete")),
    st.sampled_from([(kind, name) for kind, names in NAMES.items() for name in names[:2]]),
    st.binary(max_size=3),
)


@settings(max_examples=15, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_all_stores_answer_like_the_reference(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, tuple[DocumentKind, str], bytes]]
) -> None:
    every = (InMemoryDocuments(), FileDocuments(tmp_path_factory.mktemp("documents")), on_postgres())
    for step in steps:
        answers = [_perform(each, step) for each in every]
        assert len(set(answers)) == 1, (step, answers)
    assert len({tuple((k.name, n, d) for k, n, d in all_documents(each)) for each in every}) == 1


def _perform(documents: Documents, step: tuple[str, tuple[DocumentKind, str], bytes]) -> object:
    deed, (kind, name), data = step
    match deed:
        case "delete":
            return documents.delete(kind, name)
        case "write":
            over = None
        case "new":
            over = NEW
        case _:
            over = digest(documents.read(kind, name) or b"")
    try:
        documents.write(kind, name, data, over)
    except Conflict:
        return "conflict"
    return documents.read(kind, name)


def test_rules_belong_to_a_machine_and_consent_to_the_owner() -> None:
    owner = new_owner()
    one, other, stranger = on_postgres(owner, "a"), on_postgres(owner, "b"), on_postgres(machine="a")
    for kind, names in NAMES.items():
        one.write(kind, names[0], b"mine")
        assert stranger.names(kind) == []
        assert stranger.read(kind, names[0]) is None
        assert other.names(kind) == ([] if kind is RULES else [names[0]])
        assert not stranger.delete(kind, names[0])
        assert other.delete(kind, names[0]) is (kind is not RULES)
        stranger.write(kind, names[0], b"theirs", NEW)
    assert one.read(RULES, "approved.json") == b"mine"


@pytest.fixture
def closed_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "templates"
    folder.write_text("no folder")
    return tmp_path


def test_a_disk_that_refuses_is_a_sentence(closed_folder: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        FileDocuments(closed_folder).write(TEMPLATES, "a.json", b"1", NEW)
    with pytest.raises(StoreError, match="cannot be written"):
        FileDocuments(closed_folder).write(TEMPLATES, "a.json", b"1")
