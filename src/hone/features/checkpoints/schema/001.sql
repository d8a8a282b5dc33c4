-- Contents of files before they were changed, once each, by digest; `data` is compressed with zlib.
CREATE TABLE blobs (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    data BLOB NOT NULL
) STRICT;

-- A rewind is stored before it touches a file. `finished` is 0 until it is known what it did, then 1, and 2 once
-- it was redone. `redoes` is the rewind that this one takes back, or 0.
CREATE TABLE rewinds (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    turn INTEGER NOT NULL,
    at INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    redoes INTEGER NOT NULL
) STRICT;

-- A kind of NULL says that nothing was there. `open`: nobody has noted yet what was there afterwards.
-- `rewind` is the one that made this change, `taken_back` the one that took it back, each 0 for none.
-- AUTOINCREMENT: the order of ids is the order of changes, whatever clocks say. Times are microseconds (UTC).
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session TEXT NOT NULL,
    turn INTEGER NOT NULL,
    anchor TEXT NOT NULL,
    path BLOB NOT NULL,
    before_kind TEXT,
    before_mode INTEGER,
    before_digest TEXT,
    after_kind TEXT,
    after_mode INTEGER,
    after_digest TEXT,
    by TEXT NOT NULL,
    at INTEGER NOT NULL,
    lost TEXT NOT NULL,
    open INTEGER NOT NULL,
    expected TEXT NOT NULL,
    rewind INTEGER NOT NULL,
    taken_back INTEGER NOT NULL
) STRICT;
CREATE INDEX changes_session ON changes (session, turn, id);
CREATE INDEX changes_path ON changes (path, id);
CREATE INDEX changes_before ON changes (before_digest);
CREATE INDEX changes_rewind ON changes (rewind) WHERE rewind > 0;
CREATE INDEX changes_taken_back ON changes (taken_back) WHERE taken_back > 0;
