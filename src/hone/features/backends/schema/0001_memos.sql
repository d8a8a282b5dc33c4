-- A memo that is stored again gets a new row: the order of ids is that of the last store, whatever clocks say.
-- AUTOINCREMENT: an id is never given twice. Times are microseconds since 1970 (UTC).
CREATE TABLE memos (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    metadata TEXT NOT NULL,
    created INTEGER NOT NULL,
    updated INTEGER NOT NULL,
    UNIQUE (user, key)
) STRICT;
CREATE INDEX memos_newest ON memos (user, id);

-- Only the words; a row has the id of its memo.
CREATE VIRTUAL TABLE memo_words USING fts5 (
    key, value, content = '', contentless_delete = 1, tokenize = 'porter unicode61 remove_diacritics 2'
);
