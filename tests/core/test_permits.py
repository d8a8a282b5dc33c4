"""The named permits, by table."""

import ast
import sys
from pathlib import Path
from types import ModuleType

import pytest

from hone.core import permit
from hone.core.permit import COMPACT, CURATE, DELEGATE, REVIEW, USER, Effect, Permit

ALL = set(Effect)


@pytest.mark.parametrize(
    ("permit", "effects", "attended"),
    [
        (USER, ALL, True),
        (REVIEW, {Effect.NOTE, Effect.SKILL}, False),
        (CURATE, {Effect.SKILL}, False),
        (DELEGATE, ALL - {Effect.SPAWN}, False),
        (COMPACT, set(), False),
    ],
)
def test_a_permit_allows_its_effects_and_nothing_else(
    permit: Permit, effects: set[Effect], attended: bool
) -> None:
    looks = {effect for effect in Effect if permit.allows(frozenset({effect}), readonly=True)}
    changes = {effect for effect in Effect if permit.allows(frozenset({effect}))}
    assert looks == effects
    assert changes == (set() if permit is CURATE else effects)
    assert permit.attended is attended
    assert permit & USER == permit


def test_an_effect_that_is_new_is_in_no_permit(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(permit.__file__).read_text("utf-8")
    last = '    SPAWN = "spawn"\n'
    assert source.count(last) == 1
    newer = ModuleType("newer_permit")
    monkeypatch.setitem(sys.modules, newer.__name__, newer)
    exec(source.replace(last, f'{last}    NEW = "new"\n'), newer.__dict__)
    named = {name: each for name, each in vars(newer).items() if isinstance(each, newer.Permit)}
    assert set(named) == {"NOTHING", "USER", "DELEGATE", "REVIEW", "CURATE", "COMPACT"}
    assert [name for name, each in named.items() if newer.Effect.NEW in each.effects] == []


def test_no_source_takes_all_effects_at_once() -> None:
    def is_all(node: ast.AST) -> bool:
        return isinstance(node, ast.Call) and [ast.unparse(each) for each in node.args] == ["Effect"]

    folder = Path(permit.__file__).parents[1]
    found = [path for path in folder.rglob("*.py") if any(map(is_all, ast.walk(ast.parse(path.read_text()))))]
    assert found == []
