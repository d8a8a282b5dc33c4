"""A topic of reviews is one module: whoever adds it changes nothing else."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import hone
from hone.core.permit import REVIEW
from hone.core.topics import TOPICS

WEATHER = """
from hone.core.jobs import Topic

TOPIC = Topic(
    "weather",
    "storm",
    counts=lambda turn: 2 * turn.iterations,
    resets=lambda turn: "umbrella" in turn.changed_by,
    question="Was it wet?",
    interval=5,
)
"""
STORY = """
import asyncio
from datetime import UTC, datetime
from pathlib import Path
from click.testing import CliRunner
from hone.cli.reviews import review
from hone.core.ids import SessionId
from hone.core.jobs import TurnSummary
from hone.core.messages import user
from hone.core.ports import Header
from hone.core.prefix import Prefix
from hone.core.transcript import Transcript
from hone.core.trust import Trust
from hone.prompt.review import question, text
from hone.runtime.triggers import configure_topics, count_turn
from hone.settings.sections import Learning
from hone.stores.database import Database
from hone.stores.home import over

topics, now = configure_topics(Learning()), datetime(2026, 1, 1, tzinfo=UTC)

async def story():
    stores = over(Path("."), Database.in_memory())
    prefix = Prefix("m", "")
    talk, id = Transcript(prefix.digest).then(user("hi"), Trust.OWNER, now), SessionId("a")
    await stores.sessions.start(Header(id, now), prefix, talk.nodes)
    for turn in (TurnSummary(1), TurnSummary(2)):
        job = await stores.sessions.append(id, (), None, count_turn(turn, topics))
        print(await stores.jobs.counters(id))
    print(sorted((await stores.jobs.job(job.id)).topics), job.why)
    print(question(job.topics, talk.nodes, text).partition(chr(10))[0])
    await stores.close()

asyncio.run(story())
print("weather" in CliRunner().invoke(review, ["--help"]).output)
"""
TOLD = """\
{'memory': 1, 'skills': 1, 'weather': 2}
{'memory': 2, 'skills': 3}
['weather'] 5 storms
Was it wet?
True
"""


def test_a_topic_that_is_added_as_one_module_is_counted_stored_and_asked_about(tmp_path: Path) -> None:
    shutil.copytree(Path(hone.__file__).parent, tmp_path / "hone")
    (tmp_path / "hone" / "core" / "topics" / "weather.py").write_text(WEATHER)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", STORY],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == (TOLD, "")


def test_no_topic_gives_a_review_more_than_reviews_may_do() -> None:
    assert [topic.name for topic in TOPICS] == ["memory", "skills"]
    assert all(topic.effects <= REVIEW.effects for topic in TOPICS)
