"""Move a home's data between SQLite and PostgreSQL, row by row, without a change.

Words of this package: a *row* is a tuple of plain values that both databases can hold; an *end* is one of the
two databases of a move; a *fingerprint* is the count and the SHA-256 of a table's rows in key order.
"""
