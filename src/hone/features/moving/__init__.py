"""Move the data of a home to a PostgreSQL database, and back.

- End: one of the two databases. While a move runs, nobody else writes to either.
- Marker: the file in a home, or the row in PostgreSQL, that says that the data has moved away.
- Place: a file or folder of the home. Most of them stay where they are.
"""
