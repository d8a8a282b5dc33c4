-- Changes of one batch are undone, approved and rejected together; empty: the change stands for itself.
ALTER TABLE changes ADD COLUMN batch TEXT NOT NULL DEFAULT '';
CREATE INDEX changes_batch ON changes (batch) WHERE batch <> '';

-- What the curator did, and when. `session` is only a name: what it names may have been deleted. `library` stands for
-- the skills that were looked at, as they were. `changes` is a JSON list.
CREATE TABLE rounds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    why TEXT NOT NULL,
    session TEXT NOT NULL,
    library TEXT NOT NULL,
    error TEXT NOT NULL,
    report TEXT NOT NULL,
    changes TEXT NOT NULL
) STRICT;
