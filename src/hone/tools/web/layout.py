"""Build text line by line and paragraph by paragraph. Breaks and spaces are added only when text follows."""

from bisect import bisect_left

from msgspec import Struct


class Layout:
    def __init__(self) -> None:
        self.size = 0
        self.margin = ""
        """The text at the start of each line."""
        self.lead = ""
        """The text at the start of the next line: the mark of a heading or of an item."""
        self._parts: list[str] = []
        self._break = 0
        self._space = False
        self._glued = False

    def part(self, lines: int) -> None:
        if not self.lead and not self._glued:
            self._break = max(self._break, lines)

    def line(self) -> None:
        self._break = min(2, self._break + 1)

    def space(self) -> None:
        self._space = not self._glued

    def put(self, text: str) -> None:
        if self._break and self.size:
            self._append("\n" * self._break)
        elif self._space and self.size:
            self._append(" ")
        if self._break or not self.size:
            self._append(self.margin)
        self._append(self.lead + text)
        self.lead, self._break, self._space, self._glued = "", 0, False, False

    def glue(self, text: str) -> None:
        """Add text, and attach the next text to it directly."""
        self.put(text)
        self._glued = True

    def tail(self, text: str) -> None:
        """Attach text to the last text, before any pending break or space."""
        self._append(text)
        self._glued = False

    def hold(self) -> None:
        """Add no more breaks or spaces than are pending."""
        self._glued = True

    def release(self) -> None:
        self._glued = False

    def divide(self, text: str) -> None:
        """Add text on the same line and drop pending breaks."""
        self._break, self._space, self.lead = 0, False, ""
        self.glue(text)

    def whole(self) -> str:
        return "".join(self._parts)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self.size += len(text)


class Readable(Struct, frozen=True):
    """`marks` lists where the text refers to a link: a position, and a number in `links` counted from 1."""

    text: str
    title: str = ""
    links: tuple[str, ...] = ()
    marks: tuple[tuple[int, int], ...] = ()

    def page(self, start: int, room: int) -> tuple[str, str, int]:
        """Return the text from `start` on, the URLs it refers to, and where it ends. Both fit in `room`."""
        end, spent, listed = min(len(self.text), start + room), 0, set[int]()
        for position, number in self._marks(start, end):
            spent += 0 if number in listed else len(self._entry(number))
            listed.add(number)
            if position + len(f"[{number}]") > start + room - spent:
                end = min(end, position)
                break
            end = min(end, start + room - spent)
        end = self._at_a_gap(start, end)
        numbers = dict.fromkeys(number for _, number in self._marks(start, end))
        return self.text[start:end].rstrip(), "".join(map(self._entry, numbers)), end

    def _marks(self, start: int, end: int) -> tuple[tuple[int, int], ...]:
        return self.marks[bisect_left(self.marks, (start, 0)) : bisect_left(self.marks, (end, 0))]

    def _entry(self, number: int) -> str:
        return f"\n[{number}] {self.links[number - 1]}"

    def _at_a_gap(self, start: int, end: int) -> int:
        """Move the end to a line break in the second half if there is one, or else between words."""
        if end == len(self.text):
            return end
        middle = start + (end - start) // 2
        gap = max(self.text.rfind("\n", middle, end), 0) or self.text.rfind(" ", middle, end)
        return gap + 1 if gap > 0 else end
