-- What makes vectors, by its name: the rows below name it by its number. The one that was adopted last may add some.
CREATE TABLE embedders (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    adopted INTEGER NOT NULL
) STRICT;

-- The meaning of each content as signed bytes; empty where there is nothing to embed. The contents that one embedder has
-- done have no gap between the first and the last, so that these two say what is left.
CREATE TABLE vectors (
    content INTEGER PRIMARY KEY,
    embedder INTEGER NOT NULL,
    vector BLOB NOT NULL
) STRICT;
CREATE INDEX vectors_embedder ON vectors (embedder, content);

-- The signs of the vectors of 4,096 content numbers in a row, for a look at all of them. `contents` are their numbers in
-- 8 bytes each; `codes` are first the first 64 signs of all of them, then the second. `stamp` is another one whenever a
-- row is written, so that a copy in memory is known to be old.
CREATE TABLE vector_codes (
    block INTEGER PRIMARY KEY,
    embedder INTEGER NOT NULL,
    stamp INTEGER NOT NULL,
    contents BLOB NOT NULL,
    codes BLOB NOT NULL
) STRICT;

-- Vectors of short texts, by the digest of the text: a cache. The lowest numbers go first when there are too many.
CREATE TABLE meanings (
    id INTEGER PRIMARY KEY,
    embedder INTEGER NOT NULL,
    digest BLOB NOT NULL,
    vector BLOB NOT NULL,
    UNIQUE (embedder, digest)
) STRICT;

-- What was made from a content goes in the same statement.
CREATE TRIGGER contents_deleted AFTER DELETE ON contents BEGIN
    DELETE FROM vectors WHERE content = old.id;
    DELETE FROM vector_codes WHERE block = old.id >> 12;
END;
