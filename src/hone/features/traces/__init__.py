"""Export conversations as JSON lines without repeats, and import them with the same hashes.

- Content: a message by its digest, written once however many sessions share it.
- Leaf: a line of messages that no other one extends.
- Lineage: which session came from which, by branch, fork or shortening.
"""
