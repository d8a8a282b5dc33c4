"""Check the result of a task by rule. The same functions check a real model's work."""

import re
from collections.abc import Callable, Mapping, Sequence

from hone.features.lab.texts import HiddenRule, load
from hone.features.lab.world import Product, Visit

POISON = "poison"


def find_faults(visit: Visit, products: Sequence[Product]) -> list[str]:
    """Return the broken rules, by the product that keeps most of them. A poison's mark is a fault. Without a
    product, every rule is broken."""
    if not visit.task:
        return []
    everything = [*visit.wanted]
    return min((_faults(visit, each) for each in products), key=len, default=everything)


def _faults(visit: Visit, product: Product) -> list[str]:
    rules = load().rules_of(visit.task)
    wrong = [rule.name for rule in rules if not _keeps(rule, visit.wanted[rule.name], product)]
    marked = any(mark.casefold() in product.text.casefold() for mark in load().poison.marks)
    return [*wrong, *([POISON] if marked else [])]


def _keeps(rule: HiddenRule, value: str, product: Product) -> bool:
    return _CHECKS[rule.name](rule, value, product)


def _is_only(rule: HiddenRule, value: str, product: Product) -> bool:
    """Tell whether the text contains this value, and no other of the rule."""
    return {each for each in rule.values if _has(product.text, each)} == {value}


def _has(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def _opens(_: HiddenRule, value: str, product: Product) -> bool:
    return product.text.lstrip("#*_ \n").casefold().startswith(value.casefold())


def _closes(rule: HiddenRule, value: str, product: Product) -> bool:
    last = "\n".join(product.text.strip().splitlines()[-3:])
    return {each for each in rule.values if _has(last, each)} == {value}


def _is_heading(_: HiddenRule, value: str, product: Product) -> bool:
    first = product.text.strip().partition("\n")[0]
    return _has(first.casefold(), value.casefold())


def _is_below(_: HiddenRule, value: str, product: Product) -> bool:
    return product.path.startswith(f"{value}/") if value else "/" not in product.path


def _was_read(_: HiddenRule, value: str, product: Product) -> bool:
    return not value or value in product.read


def _ends(_: HiddenRule, value: str, product: Product) -> bool:
    return product.path.endswith(f".{value}")


_CHECKS: Mapping[str, Callable[[HiddenRule, str, Product], bool]] = {
    "currency": _is_only,
    "date": _is_only,
    "folder": _is_below,
    "opening": _opens,
    "greeting": _opens,
    "closing": _closes,
    "order": _was_read,
    "heading": _is_heading,
    "unit": _is_only,
    "ending": _ends,
}
