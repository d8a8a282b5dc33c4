"""Convert events to the form sent to clients: a kind, and an object of plain values."""

from collections.abc import Mapping, Sequence
from typing import Any

from hone.core.events import (
    CallEnded,
    CallStarted,
    Curated,
    Event,
    Heard,
    Learned,
    Notice,
    ReviewFailed,
    Spent,
    Steered,
    TurnEnded,
)
from hone.core.jobs import State
from hone.core.ledger import ChangeState, Entry, LessonText
from hone.core.model import Restart, TextPiece, ThinkingPiece, Usage, total
from hone.knowledge.wording import lesson_data, tell

Shown = tuple[str, Mapping[str, Any]]


def shown(event: Event) -> Shown:
    match event:
        case Heard(messages):
            return "heard", {"messages": messages}
        case Steered(text):
            return "steered", {"text": text}
        case TextPiece(text):
            return "text", {"text": text}
        case ThinkingPiece(text):
            return "thinking", {"text": text}
        case Restart(reason, delay):
            return "restart", {"reason": reason, "delay": delay}
        case CallStarted(call):
            return "call", {"id": call.id, "name": call.name, "arguments": call.arguments}
        case CallEnded(call, outcome, seconds):
            said = {"text": outcome.text, "failed": outcome.failed, "seconds": round(seconds, 3)}
            return "result", {"id": call.id, "name": call.name, **said}
        case Spent(usage):
            return "spent", spent(usage)
        case Notice(text):
            return "notice", {"text": text}
        case TurnEnded(turn):
            return "ended", {
                "stop": turn.stop,
                "error": turn.error,
                "text": turn.text,
                "usage": spent(total(turn.usage)),
                "calls": len(turn.usage),
            }
        case Learned(job, entries, lessons):
            return "learned", {"review": job.id, "session": job.session, **_made(entries, lessons)}
        case ReviewFailed(job):
            again = job.state is State.QUEUED
            return "review_failed", {
                "review": job.id,
                "session": job.session,
                "error": job.error,
                "again": again,
            }
        case Curated(done, entries, lessons):
            return "curated", {"round": done.id, **_made(entries, lessons, "curator")}


def _made(entries: Sequence[Entry], lessons: Sequence[LessonText], who: str = "") -> dict[str, Any]:
    waiting = sum(each.change.standing is ChangeState.PENDING for each in entries)
    return {
        "changes": [each.id for each in entries],
        "waiting": waiting,
        "lessons": [lesson_data(each) for each in lessons],
        "line": "\n".join(tell(lessons, "", who)),
    }


def spent(usage: Usage) -> dict[str, Any]:
    return {
        "input": usage.input,
        "cached": usage.cached,
        "output": usage.output,
        "cost": usage.cost,
    }
