"""Lines and paragraphs: text that only grows. A wish for a break or a space waits until something follows."""


class Layout:
    def __init__(self) -> None:
        self.size = 0
        self.margin = ""
        """What each line begins with."""
        self.lead = ""
        """What the next line begins with: the sign of a heading or of an item."""
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
        """What follows stands directly behind it."""
        self.put(text)
        self._glued = True

    def tail(self, text: str) -> None:
        """Behind what was written last, before any break or space that waits."""
        self._append(text)
        self._glued = False

    def hold(self) -> None:
        """No more breaks or spaces than are already wished for."""
        self._glued = True

    def release(self) -> None:
        self._glued = False

    def divide(self, text: str) -> None:
        """On the same line, whatever was wished for."""
        self._break, self._space, self.lead = 0, False, ""
        self.glue(text)

    def whole(self) -> str:
        return "".join(self._parts)

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self.size += len(text)
