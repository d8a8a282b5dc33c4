"""Take back what tools did to files, turn by turn, without touching what the user changed since.

- Checkpoint: the content of a file as it was before a tool or a command changed it.
- FileChange: one path, its state before and after, and the turn in which a tool or a command changed it.
- Rewind: restores the files as they were before a turn; itself a set of changes, so that it can be redone.
- Lost: why the content before a change was not kept, such as "too large".
"""
