"""Keep memory items by key for a user: in a file, in a database server or with a service.

- Backend: keeps memory items; null keeps none.
- MemoryItem: a text under a key, with its user, its times and its metadata.
- Item: a text that this home stored under a key; the ledger has it, and the backend is told of it.
- Mirror: copies of journal and skills that a backend keeps.
- Outbox: changes that a backend has yet to be told of; each is written in the transaction of its change.
- OutboxWorker: delivers the outbox to the backend beside the conversation.
- Reminder: what a backend holds on the user's words, placed beside them with its trust.
"""
