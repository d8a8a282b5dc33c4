-- The kind of program a change was made in, such as serve; empty for changes from before, and for the command line. The
-- index holds it, too: every column stands twice.
ALTER TABLE changes ADD COLUMN platform TEXT NOT NULL DEFAULT '';
DROP INDEX changes_session;
CREATE INDEX changes_session ON changes (
    session, id, at, target, deed, standing, confirmed, cause, about, sources, actor, parent, tool, call, reason,
    ground, quotes, batch, platform
);
