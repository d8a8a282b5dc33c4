-- Conversations that nobody has looked back over since their last turns, one row a session. A row is written with the
-- owner's words, so that leaving in any way loses nothing. Every column stands twice, as everywhere.
CREATE TABLE looks (
    session TEXT NOT NULL PRIMARY KEY,
    tree TEXT NOT NULL,
    messages INTEGER NOT NULL,
    folder TEXT NOT NULL,
    due INTEGER NOT NULL,
    cue TEXT NOT NULL,
    turns INTEGER NOT NULL,
    tainted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX looks_due ON looks (due, tree, messages, folder, cue, turns, tainted);
-- Further conversations that a review reads, a JSON list of sessions with their numbers of messages.
ALTER TABLE jobs ADD COLUMN others TEXT NOT NULL DEFAULT '[]';
DROP INDEX jobs_session;
CREATE INDEX jobs_session ON jobs (
    session, id, tree, messages, topics, created, why, state, tries, review, cached, error, ended, changes, others
);
