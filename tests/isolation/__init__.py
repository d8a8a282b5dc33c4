"""Users of one database who must not see each other: canaries in every kind of row, and every way to ask."""
