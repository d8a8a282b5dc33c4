"""Wrap a drawing into a complete SVG file, readable in light and dark mode."""

from collections.abc import Iterable
from html import escape

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328; }
.heading { font-weight: 600; }
.value { font-size: 12px; fill: #59636e; }
.hone { fill: #0a5fc4; }
.floor { fill: #8c959f; }
.aim { stroke: #b3261e; stroke-width: 2; }
.axis { stroke: #8c959f; stroke-width: 1; }
.span { stroke: #59636e; stroke-width: 3; }
.clear { stroke: #0a5fc4; stroke-width: 3; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .value { fill: #a8b2bd; }
  .hone { fill: #6cb0ff; }
  .floor { fill: #7d8590; }
  .aim { stroke: #ff8f85; }
  .axis { stroke: #7d8590; }
  .span { stroke: #a8b2bd; }
  .clear { stroke: #6cb0ff; }
}
""".strip()


def framed(width: int, height: int, title: str, told: str, drawn: Iterable[str]) -> str:
    """Return a complete SVG file, for light and dark mode. `told` describes the drawing in sentences."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-labelledby="title desc">'
    )
    named = f'<title id="title">{escape(title)}</title>'
    description = f'<desc id="desc">{escape(told)}</desc>'
    return "\n".join((head, named, description, f"<style>{STYLE}</style>", *drawn, "</svg>", ""))
