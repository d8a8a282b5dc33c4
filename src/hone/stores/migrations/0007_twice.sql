-- Every column stands twice: in its table and in an index. SQLite's own check compares the two, so that a bit that
-- flipped in either is noticed, and what is lost of one can be read from the other. Left out is what has a digest (contents,
-- prefixes, knowledge), what a chain of hashes holds, and what is made from other rows (holdings, skills, the end and
-- the opening of a session). An index that was there is widened, so that a write touches no more of them.
DROP INDEX nodes_at;
CREATE INDEX nodes_at ON nodes (at, content, trust);
DROP INDEX sessions_tree;
CREATE INDEX sessions_tree ON sessions (tree, id, title, origin, folder, parent, shared, created);
DROP INDEX spending_session;
CREATE INDEX spending_session ON spending (session, id, at, model, origin, input, cached, written, output, cost);
DROP INDEX changes_session;
CREATE INDEX changes_session ON changes (
    session, id, at, target, deed, standing, confirmed, cause, about, sources, actor, parent, tool, call, reason,
    ground, quotes, batch
);
CREATE INDEX deltas_whole ON deltas (path, before, after);
DROP INDEX evidence_session;
CREATE INDEX evidence_session ON evidence (session, message, trust, digest);
CREATE INDEX prints_whole ON prints (digest, inode, modified);
-- The digest of the words that were put into the index for a card; empty for those from before.
ALTER TABLE cards ADD COLUMN words TEXT NOT NULL DEFAULT '';
CREATE INDEX cards_whole ON cards (description, words);
CREATE INDEX tallies_whole ON tallies (
    views, uses, patches, background_views, background_patches, last_use, succeeded, corrected
);
DROP INDEX uses_session;
CREATE INDEX uses_session ON uses (session, skill, result);
DROP INDEX jobs_session;
CREATE INDEX jobs_session ON jobs (
    session, id, tree, messages, topics, created, why, state, tries, review, cached, error, ended, changes
);
CREATE INDEX counters_whole ON counters (turns, iterations);
CREATE INDEX backlog_whole ON backlog (upto);
CREATE INDEX rounds_whole ON rounds (at, why, session, library, error, report, changes);
CREATE INDEX outbox_whole ON outbox (tries, refused, error);
CREATE INDEX mirror_whole ON mirror (home, backend);
