"""Payback over HTTP: the bill with every lesson, and one lesson with what it saved."""

from typing import Annotated, Any

import msgspec

from hone.features.payback import report
from hone.features.payback.matching import compare
from hone.features.payback.reading import DAYS, read_account
from hone.web.operation import Nothing, Operation, OperationCall


class BillSpan(msgspec.Struct, frozen=True):
    days: Annotated[int, msgspec.Meta(ge=1, le=3_660)] = DAYS


async def listed(call: OperationCall[BillSpan, Nothing]) -> dict[str, Any]:
    """What was spent, divided among conversations, lessons and what belongs to no lesson. Amounts are exact
    decimals of US dollars, as text."""
    hone = call.state.hone
    account = await read_account(hone, call.query.days)
    return report.bill_data(account, await report.list_rows(hone, account))


async def one(call: OperationCall[BillSpan, Nothing]) -> dict[str, Any]:
    """One lesson by the number of a change that brought it, with what experiments found, and with
    conversations before and after, which are weaker evidence."""
    hone = call.state.hone
    account = await read_account(hone, call.query.days)
    lesson = account.lessons.find(str(call.path["change"]))
    row = await report.make_row(hone, account, lesson)
    return report.detail_data(row, await compare(hone, account, lesson))


OPERATIONS = (
    Operation("GET", "/api/payback", listed, query=BillSpan),
    Operation("GET", "/api/payback/{change:int}", one, query=BillSpan),
)
