-- `tree` is the conversation that all branches and forks of a session come from. It is kept and not looked up, so that
-- it stays when a parent is deleted. For sessions from before: the last ancestor that is known by name. Names can be
-- given again, so parents may go in circles; then each is its own tree.
ALTER TABLE sessions ADD COLUMN tree TEXT NOT NULL DEFAULT '';
UPDATE sessions SET tree = id;
CREATE INDEX sessions_parent ON sessions (parent);
WITH RECURSIVE known (id, tree) AS (
    SELECT id, coalesce(parent, id) FROM sessions WHERE parent IS NULL OR parent NOT IN (SELECT id FROM sessions)
    UNION ALL
    SELECT s.id, known.tree FROM known JOIN sessions AS s ON s.parent = known.id
)
UPDATE sessions SET tree = known.tree FROM known WHERE known.id = sessions.id;
DROP INDEX sessions_parent;
CREATE INDEX sessions_tree ON sessions (tree);

-- Reviews that are due, and what became of them. `session`, `tree` and `review` are only names: what they name may have
-- been deleted, but the session of a queued one is there. `topics` and `changes` are JSON lists.
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    tree TEXT NOT NULL,
    messages INTEGER NOT NULL,
    topics TEXT NOT NULL,
    created INTEGER NOT NULL,
    why TEXT NOT NULL,
    state TEXT NOT NULL,
    tries INTEGER NOT NULL,
    review TEXT NOT NULL,
    cached REAL,
    error TEXT NOT NULL,
    ended INTEGER,
    changes TEXT NOT NULL
) STRICT;
CREATE INDEX jobs_queued ON jobs (id) WHERE state = 'queued';
CREATE INDEX jobs_session ON jobs (session);

-- Since the last review was queued; a tree without a row has counted nothing.
CREATE TABLE counters (
    tree TEXT NOT NULL PRIMARY KEY,
    turns INTEGER NOT NULL,
    iterations INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
