-- Times are microseconds since 1970 (UTC) and never decide an order: clocks jump, sequence numbers do not.

CREATE TABLE prefixes (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

-- Canonical bytes of messages, once each, however many conversations hold them.
CREATE TABLE contents (
    id INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    body BLOB NOT NULL
) STRICT;

-- A tree of nodes under one prefix. A session that moves to another prefix gets a new chain.
CREATE TABLE chains (
    id INTEGER PRIMARY KEY,
    prefix INTEGER NOT NULL REFERENCES prefixes (id)
) STRICT;
CREATE INDEX chains_prefix ON chains (prefix);

-- `former` is the node with the same content in the chain that a session moved away from. It is kept for each node
-- and not for the head alone, so that a branch of the moved session keeps what it shares and nothing else.
-- AUTOINCREMENT: a number that was once a node's is never another's. A chain goes with its first node, hence no
-- reference, which would have to be looked up for each chain that goes.
CREATE TABLE nodes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    chain INTEGER NOT NULL,
    parent INTEGER REFERENCES nodes (id),
    former INTEGER REFERENCES nodes (id),
    content INTEGER NOT NULL REFERENCES contents (id),
    depth INTEGER NOT NULL,
    trust INTEGER NOT NULL,
    at INTEGER NOT NULL,
    hash TEXT NOT NULL
) STRICT;
CREATE INDEX nodes_parent ON nodes (parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_former ON nodes (former) WHERE former IS NOT NULL;
CREATE INDEX nodes_content ON nodes (content);

-- A row says all that a list shows and an append needs, whatever has become of the conversation. `parent` is
-- only a name: the session it names may have been deleted. `opening` are the user's first words, said in message
-- `opened` (0 if there are none yet). `hash` is the head's, so that a head that points elsewhere is noticed.
-- `touched` grows with every activity in any session.
CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    title TEXT NOT NULL,
    origin TEXT NOT NULL,
    folder TEXT NOT NULL,
    parent TEXT,
    shared INTEGER NOT NULL,
    created INTEGER NOT NULL,
    model TEXT NOT NULL,
    opened INTEGER NOT NULL,
    opening TEXT NOT NULL,
    messages INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    chain INTEGER NOT NULL,
    head INTEGER NOT NULL REFERENCES nodes (id),
    hash TEXT NOT NULL,
    touched INTEGER NOT NULL UNIQUE
) STRICT;
CREATE INDEX sessions_head ON sessions (head);

-- What a session cost stays known when the session is gone, hence no reference.
CREATE TABLE spending (
    id INTEGER PRIMARY KEY,
    session TEXT NOT NULL,
    at INTEGER NOT NULL,
    model TEXT NOT NULL,
    origin TEXT NOT NULL,
    input INTEGER NOT NULL,
    cached INTEGER NOT NULL,
    written INTEGER NOT NULL,
    output INTEGER NOT NULL,
    cost REAL
) STRICT;
CREATE INDEX spending_session ON spending (session);
