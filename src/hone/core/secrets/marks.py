"""Say where secrets stand in a text, and put marks in their place."""

from collections.abc import Iterable

Span = tuple[int, int, str]
"""Where a secret begins and ends, and its kind."""


def mark(kind: str) -> str:
    return f"[redacted: {kind}]"


def marked(text: str, spans: Iterable[Span], *, by_line: bool = False) -> str:
    """Replace each span with a mark; spans may overlap. With `by_line`, each line of a secret gets a mark, so
    that lines keep their numbers."""
    kept, done = [], 0
    for start, end, kind in sorted(spans):
        if start >= done:
            rows = text.count("\n", start, end) if by_line else 0
            kept += [text[done:start], "\n".join([mark(kind)] * (rows + 1))]
        elif by_line and end > done:
            kept.append("\n" * text.count("\n", done, end))
        done = max(done, end)
    return "".join([*kept, text[done:]]) if kept else text
