"""Our check of a JSON schema agrees with a validator that others keep, and refuses what it cannot check."""

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hone.core.errors import Refused
from hone.core.json_schema import check_schema, find_misfit
from tests.conftest import Figures, Tier

NAMES = st.sampled_from(["a", "b", "c"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -2.5])
LEAVES = st.none() | st.booleans() | NUMBERS | st.text("ab", max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
COUNTS = st.integers(0, 3)
KINDS = st.sampled_from(["null", "boolean", "string", "integer", "number", "array", "object"])


def extended(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.lists(inner, min_size=1, max_size=3)
    keywords = {
        "type": KINDS | st.lists(KINDS, min_size=1, max_size=3, unique=True),
        "properties": st.dictionaries(NAMES, inner, max_size=3),
        "required": st.lists(NAMES, max_size=2, unique=True),
        "additionalProperties": inner,
        "items": inner,
        "prefixItems": some,
        "anyOf": some,
        "oneOf": some,
        "allOf": some,
        "enum": st.lists(VALUES, min_size=1, max_size=3),
        "const": VALUES,
        "uniqueItems": st.booleans(),
        "multipleOf": st.sampled_from([1, 2, 0.5]),
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
        **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), NUMBERS),
        **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), COUNTS),
        **dict.fromkeys(("minProperties", "maxProperties"), COUNTS),
        "title": st.just("a title"),
    }
    few = st.lists(st.sampled_from(sorted(keywords)), max_size=3, unique=True)
    return few.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}), extended, max_leaves=5)
DEFINED = {"x": {"type": ["integer", "string"]}, "y": {"type": "array", "items": {"$ref": "#/$defs/x"}}}


def test_a_value_fits_where_another_validator_says_so(tier: Tier, figures: Figures) -> None:
    counts = {"fit": 0, "misfit": 0, "wrong": 0}

    @settings(max_examples=tier.size(short=400, full=20_000))
    @given(extended(SCHEMAS), VALUES)
    def check(schema: dict[str, Any], value: Any) -> None:
        whole = {**schema, "$defs": DEFINED}
        check_schema(whole)
        ours, theirs = find_misfit(value, whole) == "", jsonschema_rs.is_valid(whole, value)
        counts["fit" if theirs else "misfit"] += 1
        counts["wrong"] += ours is not theirs
        assert ours is theirs, (whole, value)

    try:
        check()
    finally:
        figures.tally(counts["fit"] + counts["misfit"], got_in=counts["wrong"], note=f"checks: {counts}")
    assert min(counts["fit"], counts["misfit"]) > tier.size(short=50, full=1_000)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ([], "A JSON schema is an object"),
        ({"type": "strin"}, "$.type is not what it must be"),
        ({"type": [{}]}, "$.type is not what it must be"),
        ({"properties": []}, "$.properties is no object"),
        ({"properties": {"a": 1}}, "$.properties.a is no schema"),
        ({"anyOf": []}, "$.anyOf is no list of schemas"),
        ({"minimum": "1"}, "$.minimum is not what it must be"),
        ({"maxItems": -1}, "$.maxItems is not what it must be"),
        ({"$ref": "#/$defs/x"}, "$.$ref is not what it must be"),
        ({"$ref": "http://127.0.0.1/x"}, "$.$ref is not what it must be"),
        ({"items": {"pattern": "(a+)+$"}}, "Hone does not check 'pattern' (at $.items)."),
        ({"if": {}}, "Hone does not check 'if'"),
    ],
)
def test_what_cannot_be_checked_is_refused_with_its_place(schema: Any, said: str) -> None:
    with pytest.raises(Refused) as refused:
        check_schema(schema)
    assert said in str(refused.value)


def test_an_endless_schema_and_a_deep_value_end() -> None:
    choices = {"anyOf": [{"$ref": "#/$defs/x"}, {"$ref": "#/$defs/x"}]}
    endless = {"$defs": {"x": choices}, "$ref": "#/$defs/x"}
    check_schema(endless)
    assert find_misfit(1, endless) == "the schema takes too long to check"
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    assert "nested too deeply" in find_misfit(deep, {"items": {"$ref": "#"}})
    schema: Any = {}
    for _ in range(900):
        schema = {"items": schema}
    with pytest.raises(Refused, match="nested too deeply"):
        check_schema(schema)
