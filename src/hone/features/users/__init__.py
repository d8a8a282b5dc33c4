"""Users of a team's Hone: who they are, their keys and limits, what they used, and the audit log.

A user is the owner of some rows of a database. An administrator is anybody who can open that database by its
address; they see numbers and never what users say.
"""
