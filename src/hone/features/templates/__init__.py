"""Keep calls that worked in one session as examples for the start of others.

- Example: a call with its own result; it never happened in the conversation that shows it.
- Template: the examples from one session, under a name.
- WorkKind: the kind that most calls of a session did: code, file, research, or mixed.
"""
