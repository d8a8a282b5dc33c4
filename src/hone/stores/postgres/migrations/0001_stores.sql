-- Every row carries its owner, and every key begins with it. Policies at the end are the second wall: a query that forgets
-- the owner finds nothing. Times are microseconds since 1970 (UTC) and never decide an order. Text is compared byte by byte.
-- It holds no NUL: that is escaped on the way in (hone.stores.postgres.text).
CREATE DOMAIN word AS text COLLATE "C";

-- One row an owner: the last ids that were given. Whoever gives one locks the row first, so that a reader who has seen an id
-- has seen all before it. `home` is by what copies kept elsewhere know this owner, `backend` where they are kept.
CREATE TABLE owners (
    owner word PRIMARY KEY,
    changes bigint NOT NULL DEFAULT 0,
    jobs bigint NOT NULL DEFAULT 0,
    rounds bigint NOT NULL DEFAULT 0,
    home word NOT NULL DEFAULT substr(replace(gen_random_uuid()::text, '-', ''), 1, 16),
    backend word NOT NULL DEFAULT ''
);

CREATE TABLE prefixes (
    owner word NOT NULL,
    digest word NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (owner, digest)
);

-- Canonical bytes of messages, once for each owner. They are already short or compressed by the server when long.
CREATE TABLE contents (
    owner word NOT NULL,
    digest word NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (owner, digest)
);

CREATE SEQUENCE chain_ids;
CREATE TABLE chains (
    owner word NOT NULL,
    id bigint NOT NULL DEFAULT nextval('chain_ids'),
    prefix word NOT NULL,
    PRIMARY KEY (owner, id),
    FOREIGN KEY (owner, prefix) REFERENCES prefixes (owner, digest)
);
CREATE INDEX chains_prefix ON chains (owner, prefix);

-- No reference to the contents: looking each of them up again would cost an append as much as writing it. Who deletes one is
-- alone (0002). `former` is the node with the same content in the chain that a session moved away from.
CREATE SEQUENCE node_ids;
CREATE TABLE nodes (
    owner word NOT NULL,
    id bigint NOT NULL,
    chain bigint NOT NULL,
    parent bigint,
    former bigint,
    content word NOT NULL,
    depth integer NOT NULL,
    trust smallint NOT NULL,
    at bigint NOT NULL,
    hash word NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX nodes_parent ON nodes (owner, parent) WHERE parent IS NOT NULL;
CREATE INDEX nodes_former ON nodes (owner, former) WHERE former IS NOT NULL;
CREATE INDEX nodes_content ON nodes (owner, content);

-- `touched` grows with every activity. What an append changes is in no index, so that it touches none.
CREATE SEQUENCE touches;
CREATE TABLE sessions (
    owner word NOT NULL,
    id word NOT NULL,
    title word NOT NULL,
    origin word NOT NULL,
    folder word NOT NULL,
    parent word,
    shared integer NOT NULL,
    created bigint NOT NULL,
    tree word NOT NULL,
    model word NOT NULL,
    opened integer NOT NULL,
    opening word NOT NULL,
    messages integer NOT NULL,
    updated bigint NOT NULL,
    chain bigint NOT NULL,
    head bigint NOT NULL,
    hash word NOT NULL,
    touched bigint NOT NULL DEFAULT nextval('touches'),
    PRIMARY KEY (owner, id)
);
CREATE INDEX sessions_chain ON sessions (owner, chain);
CREATE INDEX sessions_tree ON sessions (owner, tree);
CREATE INDEX sessions_parent ON sessions (owner, parent) WHERE parent IS NOT NULL;

-- What a session cost stays known when the session is gone, hence no reference.
CREATE SEQUENCE spending_ids;
CREATE TABLE spending (
    owner word NOT NULL,
    id bigint NOT NULL DEFAULT nextval('spending_ids'),
    session word NOT NULL,
    at bigint NOT NULL,
    model word NOT NULL,
    origin word NOT NULL,
    input bigint NOT NULL,
    cached bigint NOT NULL,
    written bigint NOT NULL,
    output bigint NOT NULL,
    cost double precision,
    PRIMARY KEY (owner, id)
);
CREATE INDEX spending_session ON spending (owner, session);
CREATE INDEX spending_at ON spending (owner, at);

-- Reviews. `topics`, `changes` and `others` are JSON lists.
CREATE TABLE jobs (
    owner word NOT NULL,
    id bigint NOT NULL,
    session word NOT NULL,
    tree word NOT NULL,
    messages integer NOT NULL,
    topics word NOT NULL,
    created bigint NOT NULL,
    why word NOT NULL,
    state word NOT NULL DEFAULT 'queued',
    tries integer NOT NULL DEFAULT 0,
    review word NOT NULL DEFAULT '',
    cached double precision,
    error word NOT NULL DEFAULT '',
    ended bigint,
    changes word NOT NULL DEFAULT '[]',
    others word NOT NULL DEFAULT '[]',
    PRIMARY KEY (owner, id)
);
CREATE INDEX jobs_queued ON jobs (owner, id) WHERE state = 'queued';
CREATE INDEX jobs_session ON jobs (owner, session);

CREATE TABLE counts (
    owner word NOT NULL,
    tree word NOT NULL,
    topic word NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (owner, tree, topic)
);

CREATE TABLE looks (
    owner word NOT NULL,
    session word NOT NULL,
    tree word NOT NULL,
    messages integer NOT NULL,
    folder word NOT NULL,
    due bigint NOT NULL,
    cue word NOT NULL,
    turns integer NOT NULL,
    tainted boolean NOT NULL,
    PRIMARY KEY (owner, session)
);

-- Contents of the journal and of skills.
CREATE TABLE knowledge (
    owner word NOT NULL,
    digest word NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (owner, digest)
);

-- The truth. Rows are only added. `quotes` and `sources` are JSON lists.
CREATE TABLE changes (
    owner word NOT NULL,
    id bigint NOT NULL,
    at bigint NOT NULL,
    target word NOT NULL,
    deed word NOT NULL,
    standing word NOT NULL,
    confirmed boolean NOT NULL,
    cause word NOT NULL,
    about bigint,
    sources word NOT NULL,
    actor word NOT NULL,
    session word NOT NULL,
    parent word NOT NULL,
    tool word NOT NULL,
    call word NOT NULL,
    reason word NOT NULL,
    ground smallint NOT NULL,
    quotes word NOT NULL,
    batch word NOT NULL,
    platform word NOT NULL,
    PRIMARY KEY (owner, id)
);
CREATE INDEX changes_target ON changes (owner, target);
CREATE INDEX changes_session ON changes (owner, session);
CREATE INDEX changes_about ON changes (owner, about) WHERE about IS NOT NULL;
CREATE INDEX changes_pending ON changes (owner, id) WHERE standing = 'pending';
CREATE INDEX changes_batch ON changes (owner, batch) WHERE batch <> '';

CREATE TABLE deltas (
    owner word NOT NULL,
    change bigint NOT NULL,
    position integer NOT NULL,
    path word NOT NULL,
    before word,
    after word,
    PRIMARY KEY (owner, change, position),
    FOREIGN KEY (owner, change) REFERENCES changes (owner, id)
);

CREATE TABLE evidence (
    owner word NOT NULL,
    change bigint NOT NULL,
    position integer NOT NULL,
    session word NOT NULL,
    message bigint NOT NULL,
    trust smallint NOT NULL,
    digest word NOT NULL,
    PRIMARY KEY (owner, change, position),
    FOREIGN KEY (owner, change) REFERENCES changes (owner, id)
);
CREATE INDEX evidence_session ON evidence (owner, session, message);

-- What the active changes have made of each target.
CREATE TABLE holdings (
    owner word NOT NULL,
    target word NOT NULL,
    path word NOT NULL,
    digest word NOT NULL,
    PRIMARY KEY (owner, target, path)
);

-- What was last put on a disk. Several folders may publish the same knowledge: `checkout` is which one. Numbers of a file
-- system can be larger than bigint, hence text.
CREATE TABLE published (
    owner word NOT NULL,
    checkout word NOT NULL,
    target word NOT NULL,
    path word NOT NULL,
    digest word NOT NULL,
    inode word NOT NULL,
    modified word NOT NULL,
    PRIMARY KEY (owner, checkout, target, path)
);

CREATE TABLE skills (
    owner word NOT NULL,
    name word NOT NULL,
    document word NOT NULL,
    birth word NOT NULL,
    pinned boolean NOT NULL,
    archived boolean NOT NULL,
    project word NOT NULL,
    PRIMARY KEY (owner, name)
);
CREATE INDEX skills_document ON skills (owner, document);

-- What a document says of itself: a cache. `front` are the words of name and description, `words` those of all.
CREATE TABLE cards (
    owner word NOT NULL,
    digest word NOT NULL,
    description word NOT NULL,
    stems word NOT NULL,
    front text[] NOT NULL,
    words text[] NOT NULL,
    PRIMARY KEY (owner, digest)
);
CREATE INDEX cards_words ON cards USING gin (words);

-- Days are ISO dates.
CREATE TABLE tallies (
    owner word NOT NULL,
    skill word NOT NULL,
    views bigint NOT NULL,
    uses bigint NOT NULL,
    patches bigint NOT NULL,
    background_views bigint NOT NULL,
    background_patches bigint NOT NULL,
    last_use word,
    succeeded bigint NOT NULL DEFAULT 0,
    corrected bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, skill)
);
CREATE TABLE uses (
    owner word NOT NULL,
    skill word NOT NULL,
    day word NOT NULL,
    session word NOT NULL,
    result word NOT NULL DEFAULT 'unknown',
    PRIMARY KEY (owner, skill, day, session)
);
CREATE INDEX uses_session ON uses (owner, session, skill);

-- The curator's runs. `changes` is a JSON list.
CREATE TABLE rounds (
    owner word NOT NULL,
    id bigint NOT NULL,
    at bigint NOT NULL,
    why word NOT NULL,
    session word NOT NULL,
    library word NOT NULL,
    error word NOT NULL,
    report word NOT NULL,
    changes word NOT NULL,
    PRIMARY KEY (owner, id)
);

-- A row for each change that took effect, made with it, until a memory backend was told of it.
CREATE TABLE outbox (
    owner word NOT NULL,
    change bigint NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    refused boolean NOT NULL DEFAULT false,
    error word NOT NULL DEFAULT '',
    PRIMARY KEY (owner, change),
    FOREIGN KEY (owner, change) REFERENCES changes (owner, id)
);

-- Where a history that a client sends belongs: a cache. The row with 0 messages says up to which head a session is done.
CREATE TABLE histories (
    owner word NOT NULL,
    session word NOT NULL,
    messages integer NOT NULL,
    digest word NOT NULL,
    PRIMARY KEY (owner, session, messages),
    FOREIGN KEY (owner, session) REFERENCES sessions (owner, id) ON DELETE CASCADE
);
CREATE INDEX histories_digest ON histories (owner, digest);
