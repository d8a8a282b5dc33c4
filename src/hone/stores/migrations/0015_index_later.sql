-- A message is indexed after it was stored, not with it: `done` is the last content that is in the index, `upto` still the
-- last of those from before it. What lies above both waits for a quiet moment, or for the next search.
ALTER TABLE backlog ADD COLUMN done INTEGER NOT NULL DEFAULT 0;
UPDATE backlog SET done = (SELECT coalesce(max(id), 0) FROM contents);
DROP INDEX backlog_whole;
CREATE INDEX backlog_whole ON backlog (upto, done);
