"""The provider of the rows about learning, a separate process: a scripted model that reads files, and that
notes one thing in the journal when it is asked to look back. It works with Hone and with the peer alike.

The user's words end with `read=3-5`: it reads these files, one after the other, and answers. Each body is
written to one file, the tokens of each answer to another.
"""

import argparse
import asyncio
import json
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.provider import Provider
from benchmarks.talk import REMARK, WORDS
from hone.core.messages import Message, Role, assistant
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call, weigh

REVIEWS = {"hone": "look back over this conversation", "peer": "Review the conversation above"}
"""The start of a review's question on each side."""
READS = 3
"""Files per turn."""
_FACT = re.compile(r"The port of project \d+ is \d+\.")
_READ = re.compile(r"read=(\d+)-(\d+)")

Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Learner:
    provider: Provider
    record: Path
    said: Path

    @property
    def url(self) -> str:
        return self.provider.url

    def bodies(self) -> list[Body]:
        """Return all requests so far."""
        lines = self.record.read_text(encoding="utf-8").splitlines()
        told = [json.loads(line) for line in lines]
        return [json.loads(each["body"]) for each in told if each["path"] in PATHS]

    def output(self) -> int:
        """Return the tokens of all answers so far."""
        return sum(map(int, self.said.read_text(encoding="utf-8").split()))


PATHS = ("/v1/chat/completions", "/v1/messages")


@contextmanager
def learning(environ: Mapping[str, str], folder: Path, latency: float = 0.0) -> Iterator[Learner]:
    command: list[str | Path] = [sys.executable, "-m", "benchmarks.learner", folder, str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(environ)) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline())
            yield Learner(Provider(port), folder / "record", folder / "said")
        finally:
            process.terminate()


def words(turn: int) -> str:
    """Return the user's words in a turn, and what there is to learn from it."""
    first = turn * READS
    return f"{fact(turn)} {WORDS}read={first}-{first + READS - 1}"


def fact(turn: int) -> str:
    return f"The port of project {turn} is {4000 + turn}."


def furnish(folder: Path, turns: int) -> None:
    """Write the files that this many turns read."""
    for number in range(turns * READS):
        lines = (f"{number}.{line}: {WORDS}\n" for line in range(7))
        (folder / f"part-{number}.md").write_text("".join(lines), encoding="utf-8")


def speak(messages: Sequence[Message]) -> Message:
    place = max(at for at, message in enumerate(messages) if message.role is Role.USER)
    asked, spoken = messages[place].text, len(messages[place + 1 :]) // 2
    for side, beginning in REVIEWS.items():
        if beginning in asked:
            return looked_back(side, messages[:place], spoken)
    files = range(int(found[1]), int(found[2]) + 1) if (found := _READ.search(asked)) else range(0)
    if spoken < len(files):
        return assistant(REMARK, call("read_file", path=f"part-{files[spoken]}.md"))
    return assistant(REMARK * 3)


def looked_back(side: str, before: Sequence[Message], spoken: int) -> Message:
    """Look at the skills, note what the user said last, and finish."""
    facts = [match[0] for message in before if (match := _FACT.search(message.text))]
    if spoken == 0:
        return assistant(call("skills_list"))
    if spoken == 1 and facts:
        if side == "hone":
            note = call("memory", action="add", target="memory", text=facts[-1], evidence=[facts[-1]])
        else:
            note = call("memory", action="add", target="memory", content=facts[-1])
        return assistant(note)
    return assistant("Saved.")


async def serve(folder: Path, latency: float) -> None:
    with (folder / "said").open("a", encoding="utf-8", buffering=1) as said:

        def tell(messages: Sequence[Message]) -> Message:
            reply = speak(messages)
            print(weigh(reply), file=said)
            return reply

        async with FakeProvider(tell, latency=latency, record=folder / "record", keep=False) as stage:
            print(stage.port, flush=True)
            await asyncio.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learner", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("latency", type=float)
    options = parser.parse_args()
    asyncio.run(serve(options.folder, options.latency))


if __name__ == "__main__":
    main()
