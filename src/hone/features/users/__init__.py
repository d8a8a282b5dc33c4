"""Users of a team's Hone: who they are, their keys and limits, what they used, and the audit log.

A user is somebody with rows of their own in one database. An administrator is whoever can open that database
by its address; they see numbers and never what users say.
"""
