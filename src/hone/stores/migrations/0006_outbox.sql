-- A row for each change that took effect, made with it, until a memory backend was told of it.
CREATE TABLE outbox (
    change INTEGER PRIMARY KEY REFERENCES changes (id),
    tries INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    error TEXT NOT NULL DEFAULT ''
) STRICT;
INSERT INTO outbox (change)
SELECT id FROM changes WHERE standing = 'active' AND id IN (SELECT change FROM deltas);

-- One row: by what this home is known to whoever keeps copies for several, and where they are kept.
CREATE TABLE mirror (
    home TEXT NOT NULL,
    backend TEXT NOT NULL
) STRICT;
INSERT INTO mirror (home, backend) VALUES (lower(hex(randomblob(8))), '');
