"""All that is disturbed at its calls."""

from collections.abc import Sequence

from tests.faults.points import files, knowledge
from tests.faults.points.backups import BackingUp, Restoring
from tests.faults.points.deleting import Deleting
from tests.faults.points.erasing import Erase
from tests.faults.points.reviews import Review
from tests.faults.points.rewinds import Rewinding
from tests.faults.points.scenario import Scenario
from tests.faults.points.talks import Resumed, Served, Talk

SCENARIOS: Sequence[Scenario] = (
    Talk(),
    Resumed(),
    Served(),
    Review(),
    Review("leftover", 1),
    knowledge.journal,
    knowledge.late,
    knowledge.skills,
    knowledge.undo,
    knowledge.approve,
    knowledge.archive,
    knowledge.curator,
    knowledge.proposal,
    files.templates,
    files.backend,
    files.outbox,
    files.items,
    files.Import(),
    Rewinding(),
    BackingUp(),
    Restoring(),
    Deleting(),
    Erase(),
)
