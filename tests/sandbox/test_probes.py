"""Nothing gets out of a cell, in any mode that is claimed on this machine; without a cell the probes do."""

import os

import pytest

from hone.sandbox import landlock
from tests.conftest import Figures, requires
from tests.sandbox.areas import Setting, probe, settings, shared_python

AT_LEAST = 60
pytestmark = pytest.mark.rights


def interpreter() -> str:
    python = shared_python()
    if python is None:
        pytest.skip("no interpreter that every user can start")
    return python


def is_expected(setting: Setting) -> bool:
    """Whether the machine has what the mode needs."""
    try:
        return setting.mode == "bubblewrap" or landlock.version() >= 6
    except OSError:
        return False


@pytest.mark.parametrize("setting", settings(), ids=lambda each: each.name)
def test_no_probe_gets_out(setting: Setting, figures: Figures) -> None:
    if setting.mode == "bubblewrap":
        requires("bwrap")
    result = probe(setting, interpreter())
    if "unclaimed" in result:
        figures(f"sandbox probes, {setting.name}: not claimed here ({result['unclaimed']})")
        assert os.environ.get("CI") != "true" or not is_expected(setting), result["unclaimed"]
        pytest.skip(f"not claimed here: {result['unclaimed']}")
    verdicts = result["probes"]
    out = [name for name, verdict in verdicts.items() if verdict != "refused"]
    note = f"ways out of the sandbox, {setting.name}"
    figures.tally(len(verdicts), got_in=len(out) + len(result["seen"]), note=note)
    assert out == []
    assert result["seen"] == []
    assert len(verdicts) >= AT_LEAST


def test_without_a_cell_the_probes_do_get_out() -> None:
    result = probe(Setting("none", os.geteuid()), interpreter())
    verdicts = result["probes"]
    out = [name for name, verdict in verdicts.items() if verdict == "got out"]
    assert len(out) >= (58 if os.geteuid() == 0 else 45), verdicts
    assert {"heard: datagrams", "heard: loopback", "heard: socket", "changed: append"} <= {*result["seen"]}
    assert any(each.startswith("set-uid: ") for each in result["seen"])
