-- Which contents can be searched, and on which day (days since 1970) each was first said; the words have the same id.
-- The index holds no text of its own, so a content goes out of it with the very words it came in with: hence the day.
CREATE TABLE passages (
    id INTEGER PRIMARY KEY,
    day INTEGER NOT NULL
) STRICT;
CREATE VIRTUAL TABLE passage_words USING fts5 (
    text, about, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
-- What is deleted is taken out of the index at once, not when it is next merged.
INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 1);

-- Contents from before this index, up to this id, are added bit by bit, the latest first.
CREATE TABLE backlog (upto INTEGER NOT NULL) STRICT;
INSERT INTO backlog SELECT coalesce(max(id), 0) FROM contents;

CREATE INDEX sessions_chain ON sessions (chain);
