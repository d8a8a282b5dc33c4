-- Text that came from elsewhere and lies in the owner's folders: what a file held when a foreign conversation or a
-- command with network had changed it, what such a conversation said in a command, or an object it gave to Git.
-- `units` are fingerprints of its lines, eight bytes each; `digest` is that of the whole, `blob` its name in Git.
CREATE TABLE tainted (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    path TEXT NOT NULL,
    kind TEXT NOT NULL,
    digest TEXT NOT NULL,
    blob TEXT NOT NULL,
    units BLOB NOT NULL,
    complete INTEGER NOT NULL,
    session TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX tainted_path ON tainted (path);
CREATE INDEX tainted_digest ON tainted (digest);

-- Folders that are tainted as a whole: dependencies that somebody else wrote.
CREATE TABLE folders (
    path TEXT NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Contents that the owner trusts: named to `hone trust`, or committed outside Hone.
CREATE TABLE trusted (
    digest TEXT NOT NULL PRIMARY KEY,
    path TEXT NOT NULL,
    why TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- When a command ran in a folder, or a tool wrote a file, and in which process; without an end while it does, or if the
-- process died. Times are in nanoseconds, by the clock that dates changes of files.
CREATE TABLE windows (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    place TEXT NOT NULL,
    process TEXT NOT NULL,
    session TEXT NOT NULL,
    tainted INTEGER NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER
) STRICT;

-- Where each repository stood when Hone last looked, and the commits that Hone's own commands made.
CREATE TABLE heads (
    repository TEXT NOT NULL PRIMARY KEY,
    head TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE commits (
    repository TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (repository, id)
) STRICT, WITHOUT ROWID;

-- Goes up with every row that is removed or changed, so that whoever holds a copy reads it anew.
CREATE TABLE revision (number INTEGER NOT NULL) STRICT;
INSERT INTO revision (number) VALUES (0);
