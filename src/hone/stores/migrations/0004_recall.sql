-- The words of each content, under its id. The index holds no text of its own and no lengths: those of the contents do.
CREATE VIRTUAL TABLE passage_words USING fts5 (
    text, content = '', columnsize = 0, tokenize = 'porter unicode61 remove_diacritics 2'
);
-- What is deleted is taken out of the index at once, not when it is next merged.
INSERT INTO passage_words (passage_words, rank) VALUES ('secure-delete', 1);
-- Bytes that are gathered before they are written: what comes together is put in order together.
INSERT INTO passage_words (passage_words, rank) VALUES ('hashsize', 16777216);

-- Contents from before this index, up to this id, are added bit by bit, the latest first.
CREATE TABLE backlog (upto INTEGER NOT NULL) STRICT;
INSERT INTO backlog SELECT coalesce(max(id), 0) FROM contents;

-- What was said in a span of time, however often and wherever.
CREATE INDEX nodes_at ON nodes (at, content);
CREATE INDEX sessions_chain ON sessions (chain);
