"""The files of an experiment keep their bytes, so that what an older Hone wrote is read and written alike."""

from datetime import UTC, datetime
from pathlib import Path

from hone.core.ids import SessionId
from hone.core.messages import encode, user
from hone.core.trust import Trust
from hone.core.value import replace
from hone.features.experiments.store import Studies
from hone.features.experiments.values import Arm, Check, Lesson, LessonKind, Run, Study, Task, TaskMessage
from hone.files.documents import FileDocuments

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = Run(1, Arm.WITH, True, 3, 0, 0, 1, 0.5, 2, 900, 1.25)
STUDY = Study("tidy", Lesson(LessonKind.SKILL, "sweep", "ab12"), "scripted/echo", AT)
HEAD_LINE = (
    b'{"begun":"2026-01-02T03:04:05+00:00","lesson":{"digest":"ab12","kind":"skill","name":"sweep"},'
    b'"model":"scripted/echo","pairs":20,"task":"tidy"}\n'
)
RUN_LINE = (
    b'{"arm":"with","cost":null,"early":0,"errors":0,"first":1,"first_seconds":0.5,"pair":1,'
    b'"seconds":1.25,"success":true,"tokens":900,"tools":2,"turns":3}\n'
)
TASK = Task(
    "tidy",
    SessionId("s1"),
    AT,
    "/work",
    "Tidy up",
    Check("test -f a", "done", (("a", "b"),)),
    {"a": "x"},
    (TaskMessage(encode(user("Grüße")).decode(), Trust.OWNER, AT),),
)
TASK_FILE = r"""{
 "format": 1,
 "name": "tidy",
 "session": "s1",
 "created": "2026-01-02T03:04:05+00:00",
 "folder": "/work",
 "request": "Tidy up",
 "check": {
  "script": "test -f a",
  "text": "done",
  "files": [
   [
    "a",
    "b"
   ]
  ]
 },
 "files": {
  "a": "x"
 },
 "begun": [
  {
   "message": "{\"parts\":[{\"kind\":\"text\",\"text\":\"Grüße\"}],\"role\":\"user\"}",
   "trust": "owner",
   "at": "2026-01-02T03:04:05+00:00"
  }
 ],
 "digest": "376c9c9563bf69af0ce38a5fcc90e1fd25e9ad40e942ab18c2f7cb78fdbb3ebd"
}
"""


def test_a_task_is_written_and_read_in_the_same_bytes(home: Path) -> None:
    studies = Studies(FileDocuments(home), home)
    studies.add(TASK)
    path = studies.place("tidy") / "task.json"
    assert path.read_text() == TASK_FILE
    assert studies.task("tidy") == TASK
    assert list(TASK.transcript()) == [user("Grüße")]


def test_a_study_is_written_and_read_in_the_same_bytes(home: Path) -> None:
    studies = Studies(FileDocuments(home), home)
    studies.add(TASK)
    studies.append(studies.study(STUDY), RUN)
    [path] = studies.place("tidy").glob("*.jsonl")
    assert path.read_bytes() == HEAD_LINE + RUN_LINE
    assert studies.studies("tidy") == [replace(STUDY, runs=(RUN,))]
    studies.study(replace(STUDY, pairs=30))
    assert path.read_bytes() == HEAD_LINE.replace(b":20", b":30") + RUN_LINE
