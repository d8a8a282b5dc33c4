-- What was erased, by numbers and names only, so that it can be erased again from an older backup. `what` is JSON: ids of
-- nodes, rows and sessions. `finished` is 0 until the files are done, too. `name` is random. Every column stands twice.
CREATE TABLE erasures (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    what TEXT NOT NULL,
    finished INTEGER NOT NULL
) STRICT;
CREATE INDEX erasures_whole ON erasures (name, at, what, finished);
