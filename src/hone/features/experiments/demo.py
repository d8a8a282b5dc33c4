"""Demonstrate an experiment with a scripted model: one task, started with and without a template."""

from collections.abc import Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from hone.app import Hone
from hone.core.clock import SystemClock
from hone.core.errors import HoneError
from hone.core.messages import Message, Role, assistant
from hone.core.turn import Stop
from hone.features.experiments.findings import Finding, conclude, found
from hone.features.experiments.recording import RecordingOptions, record
from hone.features.experiments.runner import ExperimentRunner, Tell, quiet
from hone.features.experiments.subjects import find
from hone.features.experiments.values import Check, LessonKind
from hone.features.templates.part import TemplatesPart
from hone.features.templates.seeding import TemplateOptions as Pattern
from hone.models.fake_provider import FakeProvider
from hone.models.scripted import call
from hone.settings import Settings
from hone.settings.sections import ProviderSettings

REQUEST = "Add up the sales and write the sum to total.txt."
FILES = {
    "README.md": "# Sales\n\nOne file for each year.\n",
    "data/2025.csv": "month,amount\njan,40\nfeb,25\nmar,54\n",
}
SUM = "119"
COLD, SEEDED = 0.45, 0.95
"""How often the scripted model gets it right."""
SEED = 11


class DemoModel:
    """A model that first looks for the file, and often adds up wrong. With an example of how it was done, it
    goes directly there. Its luck is drawn once for each conversation, the same in each rehearsal."""

    def __init__(self) -> None:
        self._luck = Random(SEED)
        self._good = True
        self._taught = False

    def __call__(self, messages: Sequence[Message]) -> Message:
        asked = max(at for at, message in enumerate(messages) if message.role is Role.USER)
        seeded = any(message.calls for message in messages[:asked])
        said = len([message for message in messages[asked:] if message.role is Role.ASSISTANT])
        if not said:
            self._good = not self._taught or self._luck.random() < (SEEDED if seeded else COLD)
            self._taught = True
        return self._steps(seeded)[said]

    def _steps(self, seeded: bool) -> list[Message]:
        search = [
            assistant("Let me look for them.", call("read_file", path="sales.csv")),
            assistant(call("read_file", path="data/sales.csv")),
            assistant(call("search_files", glob="*.csv")),
        ]
        written = SUM if self._good else "94"
        work = [
            assistant(call("read_file", path="data/2025.csv")),
            assistant(call("write_file", path="total.txt", content=f"{written}\n")),
            assistant(f"The sum is {written}. It is in total.txt."),
        ]
        return work if seeded else [*search, *work]


async def rehearse(pairs: int, tell: Tell = quiet) -> tuple[Finding, list[str]]:
    """Run one session, make a template and a task from it, and run the experiment."""
    with TemporaryDirectory(prefix="hone-demo-") as folder:
        root = Path(folder)
        async with FakeProvider(DemoModel()) as stage:
            settings = Settings(
                model="scripted/demo",
                providers={"scripted": ProviderSettings(f"{stage.url}/v1", local=False)},
            )
            work = root / "sales"
            _lay(work)
            async with Hone(home=root / "home", folder=work, settings=settings, learning="queue") as hone:
                return await _play(hone, work, pairs, tell)


def _lay(folder: Path) -> None:
    for path, text in FILES.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, "utf-8")


async def _play(hone: Hone, folder: Path, pairs: int, tell: Tell) -> tuple[Finding, list[str]]:
    hone.folders.trust(folder)
    session = await hone.session()
    turn = await session.send(REQUEST)
    if turn.stop is not Stop.ANSWERED:
        raise HoneError(f"The demo broke off: {turn.error}")
    await hone.part(TemplatesPart).create(session.id, Pattern(name="adding-up"))
    (folder / "total.txt").unlink()
    runner = ExperimentRunner(hone)
    wish = RecordingOptions("sales", files=("**/*.*",), check=Check(files=(("total.txt", SUM),)))
    task = (await record(hone.sessions, session.id, wish, (), SystemClock())).task
    runner.studies.add(task)
    subject = await find(hone, folder, LessonKind.TEMPLATE, "adding-up")
    finding = found(await runner.run(task, subject, "", pairs, tell))
    return finding, await conclude(hone, runner.studies, subject, finding)
