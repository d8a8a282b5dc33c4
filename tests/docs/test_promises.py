"""docs/promises.md: one row for each id, and every test it names is there."""

import ast
import re
from functools import cache

import pytest

from tests.docs.pages import ROOT

COUNTS = {"A": 9, "B": 8, "C": 6, "D": 8, "E": 9, "F": 6, "G": 3, "H": 4, "I": 6, "J": 3, "K": 7, "L": 7}
IDS = [f"{letter}{number}" for letter, count in COUNTS.items() for number in range(1, count + 1)]
KEPT = {
    *("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9"),
    *("B1", "B2", "B3", "B4", "B5", "B6", "B7", "B8"),
    *("C1", "C2", "C3", "C4", "C5", "C6", "D1", "D2", "D3", "D4", "D5", "D6", "D7", "D8"),
    *("E1", "E2", "E3", "E4", "E5", "E6", "E7", "E8", "E9", "F1", "F2", "F3", "F4", "F5", "F6"),
    *("G1", "G2", "G3", "H1", "H2", "H3", "H4", "I1", "I2", "I3", "I4", "I5", "I6"),
    *("J1", "J2", "J3", "K1", "K2", "K3", "K4", "K5", "K6", "K7", "L1", "L2", "L3", "L4", "L5", "L6", "L7"),
}
"""What the first version promises. An id leaves "not yet" and comes in here together with its tests."""

ROW = re.compile(r"^\| ([A-L]\d) \| (.+?) \| (.+?) \|$", re.MULTILINE)
NAMED = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
ROWS = ROW.findall((ROOT / "docs" / "promises.md").read_text("utf-8"))
TESTS = [(path, name) for _, _, held in ROWS for path, name in NAMED.findall(held)]


@cache
def defined(path: str) -> frozenset[str]:
    file = ROOT / path
    if not file.exists():
        return frozenset()
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    tree = ast.parse(file.read_text("utf-8"))
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))


def test_each_id_has_one_row_in_order() -> None:
    assert [id for id, _, _ in ROWS] == IDS


def test_a_promise_names_a_test_or_says_not_yet() -> None:
    held = {id: bool(NAMED.findall(tests)) for id, _, tests in ROWS}
    assert {id for id, named in held.items() if named} == KEPT
    assert all(tests == "not yet" for id, _, tests in ROWS if not held[id])


@pytest.mark.parametrize(("path", "name"), sorted(set(TESTS)))
def test_a_test_that_holds_a_promise_is_there(path: str, name: str) -> None:
    assert name in defined(path)
