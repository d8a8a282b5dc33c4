-- Conversations that nobody has looked back over since their last turns, one row a tree. It is written with the turn, so
-- leaving in any way loses nothing. Every column stands twice, as everywhere.
CREATE TABLE looks (
    tree TEXT NOT NULL PRIMARY KEY,
    session TEXT NOT NULL,
    messages INTEGER NOT NULL,
    folder TEXT NOT NULL,
    due INTEGER NOT NULL,
    cue TEXT NOT NULL,
    turns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX looks_due ON looks (due, session, messages, folder, cue, turns);
ALTER TABLE jobs ADD COLUMN others TEXT NOT NULL DEFAULT '[]';
