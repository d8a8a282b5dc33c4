"""Workers and servers on one PostgreSQL that are killed and stopped at random, as is the database, and what
came of it.

python -m tests.faults.fleet --seconds 180 --workers 4 --servers 3
"""
