-- Contents of the journal and of skills, once each, apart from those of messages: a session may be deleted, what was
-- learned stays until it is undone. Digests stand in the other tables as they are, so that most answers need no join.
CREATE TABLE knowledge (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

-- The truth. Rows are only added. AUTOINCREMENT: an id is never given twice. `session` and `parent` are only names:
-- what they name may have been deleted. `quotes` and `sources` are JSON lists.
CREATE TABLE changes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    target TEXT NOT NULL,
    deed TEXT NOT NULL,
    standing TEXT NOT NULL,
    confirmed INTEGER NOT NULL,
    cause TEXT NOT NULL,
    about INTEGER REFERENCES changes (id),
    sources TEXT NOT NULL,
    actor TEXT NOT NULL,
    session TEXT NOT NULL,
    parent TEXT NOT NULL,
    tool TEXT NOT NULL,
    call TEXT NOT NULL,
    reason TEXT NOT NULL,
    ground INTEGER NOT NULL,
    quotes TEXT NOT NULL
) STRICT;
CREATE INDEX changes_target ON changes (target);
CREATE INDEX changes_actor ON changes (actor);
CREATE INDEX changes_session ON changes (session);
CREATE INDEX changes_about ON changes (about) WHERE about IS NOT NULL;
CREATE INDEX changes_pending ON changes (id) WHERE standing = 'pending';

CREATE TABLE deltas (
    change INTEGER NOT NULL REFERENCES changes (id),
    position INTEGER NOT NULL,
    path TEXT NOT NULL,
    before TEXT,
    after TEXT,
    PRIMARY KEY (change, position)
) STRICT, WITHOUT ROWID;

-- `digest` is that of a message, which may be gone.
CREATE TABLE evidence (
    change INTEGER NOT NULL REFERENCES changes (id),
    position INTEGER NOT NULL,
    session TEXT NOT NULL,
    message INTEGER NOT NULL,
    trust INTEGER NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (change, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX evidence_session ON evidence (session, message);

-- What the active changes have made of each target: the fold of `changes` and `deltas`, brought along with each.
CREATE TABLE holdings (
    target TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    PRIMARY KEY (target, path)
) STRICT, WITHOUT ROWID;

-- What was last put on the disk. Numbers of a file system can be larger than SQLite's, hence text.
CREATE TABLE prints (
    target TEXT NOT NULL,
    path TEXT NOT NULL,
    digest TEXT NOT NULL,
    inode TEXT NOT NULL,
    modified TEXT NOT NULL,
    PRIMARY KEY (target, path)
) STRICT, WITHOUT ROWID;

-- A line for each skill that holds a document, made from `holdings`, so that a list of thousands reads one table.
-- `card` is that of the document, once there is one.
CREATE TABLE skills (
    name TEXT NOT NULL PRIMARY KEY,
    document TEXT NOT NULL,
    card INTEGER,
    birth TEXT NOT NULL,
    pinned INTEGER NOT NULL,
    archived INTEGER NOT NULL,
    project TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX skills_document ON skills (document);
-- All that a rank needs, without the digests.
CREATE INDEX skills_rank ON skills (archived, name, pinned, project, card);
CREATE INDEX skills_uncarded ON skills (document) WHERE card IS NULL;

-- What a document says of itself: a cache that can be made again from the contents. The words have the same id.
CREATE TABLE cards (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    description TEXT NOT NULL
) STRICT;
CREATE VIRTUAL TABLE card_words USING fts5 (
    name, description, body, tokenize = 'porter unicode61 remove_diacritics 2'
);

-- Days are ISO dates. A skill may have a tally without being in the ledger: those that come with Hone are not.
CREATE TABLE tallies (
    skill TEXT NOT NULL PRIMARY KEY,
    views INTEGER NOT NULL,
    uses INTEGER NOT NULL,
    patches INTEGER NOT NULL,
    background_views INTEGER NOT NULL,
    background_patches INTEGER NOT NULL,
    last_use TEXT,
    succeeded INTEGER NOT NULL DEFAULT 0,
    corrected INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE TABLE uses (
    skill TEXT NOT NULL,
    day TEXT NOT NULL,
    session TEXT NOT NULL,
    result TEXT NOT NULL DEFAULT 'unknown',
    PRIMARY KEY (skill, day, session)
) STRICT, WITHOUT ROWID;
CREATE INDEX uses_session ON uses (session, skill);
