"""The stores on PostgreSQL, for many users in one database. Loaded only where one is configured.

Words of this package: an *owner* is the user whose rows these are; a *lane* is a connection on which writes
about the same session follow each other; *rows* are a connection together with its owner.
"""
