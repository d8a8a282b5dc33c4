-- What several servers of one owner share. Any of them may get any request: who answers where, what others ask of a turn that
-- runs elsewhere, and who is signed in.

-- Small documents by name: API keys, links, sign-ins, wrong passwords, the secret that seals cookies.
CREATE TABLE serve_values (
    owner word NOT NULL,
    name word NOT NULL,
    value bytea NOT NULL,
    PRIMARY KEY (owner, name)
);

-- A mode that was chosen for a conversation and that its model was not told of yet.
ALTER TABLE sessions ADD COLUMN mode word;

-- Questions to the owner that wait. `choice` is the answer; the server that asked takes it from here.
CREATE TABLE questions (
    owner word NOT NULL,
    session word NOT NULL,
    id word NOT NULL,
    server word NOT NULL,
    choice word,
    reason word,
    PRIMARY KEY (owner, session, id)
);

-- The rest is about this moment. It is not logged: it costs no wait for the disk, and after a crash of the database nothing of
-- it is true any more. Servers write again what still is.
CREATE UNLOGGED TABLE turns (
    owner word NOT NULL,
    session word NOT NULL,
    server word NOT NULL,
    interrupted boolean NOT NULL DEFAULT false,
    PRIMARY KEY (owner, session)
);
CREATE UNLOGGED TABLE listeners (
    owner word NOT NULL,
    channel word NOT NULL,
    server word NOT NULL,
    PRIMARY KEY (owner, channel, server)
);
CREATE SEQUENCE post_ids;
CREATE UNLOGGED TABLE posts (
    owner word NOT NULL,
    server word NOT NULL,
    id bigint NOT NULL DEFAULT nextval('post_ids'),
    channel word NOT NULL,
    kind word NOT NULL,
    data word NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner, server, id)
);

-- Locks of this moment, by the numbers that claims have (hone.stores.postgres.claims).
CREATE FUNCTION held_claims() RETURNS SETOF bigint LANGUAGE sql STABLE AS $$
    SELECT classid::bigint << 32 | objid::bigint FROM pg_locks
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
$$;
CREATE FUNCTION is_held(p_owner text, p_name text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT hashtextextended(p_owner || ' ' || p_name, 3) IN (SELECT held_claims())
$$;
CREATE FUNCTION wake_servers(p_owner text, p_server text) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('hone_' || md5(p_owner), p_server)
$$;

-- A turn begins at a server that has claimed the conversation. Return the mode that was chosen for it, and who listens.
CREATE FUNCTION begin_turn(p_owner text, p_session text, p_server text, OUT mode text, OUT servers text[])
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO turns (owner, session, server) VALUES (p_owner, p_session, p_server)
    ON CONFLICT (owner, session) DO UPDATE SET server = excluded.server, interrupted = false;
    SELECT s.mode INTO mode FROM sessions AS s WHERE s.owner = p_owner AND s.id = p_session;
    SELECT array_agg(l.server) INTO servers FROM listeners AS l
    WHERE l.owner = p_owner AND l.channel = p_session AND l.server <> p_server;
END $$;

-- A turn has ended; who waits for that is woken.
CREATE FUNCTION end_turn(p_owner text, p_session text, p_server text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM turns WHERE owner = p_owner AND session = p_session AND server = p_server;
    IF EXISTS (SELECT 1 FROM listeners WHERE owner = p_owner AND channel = 'end of ' || p_session) THEN
        PERFORM wake_servers(p_owner, '*');
    END IF;
END $$;

-- Say once more which turns run here, and forget what servers left that are gone.
CREATE FUNCTION keep_turns(p_owner text, p_server text, p_sessions text[]) RETURNS void LANGUAGE sql AS $$
    INSERT INTO turns (owner, session, server) SELECT p_owner, each, p_server FROM unnest(p_sessions) AS each
    ON CONFLICT (owner, session) DO NOTHING
$$;
CREATE FUNCTION forget_servers(p_owner text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_gone text[];
BEGIN
    SELECT array_agg(server) INTO v_gone FROM (
        SELECT server FROM turns WHERE owner = p_owner UNION SELECT server FROM listeners WHERE owner = p_owner
        UNION SELECT server FROM questions WHERE owner = p_owner UNION SELECT server FROM posts WHERE owner = p_owner
    ) AS known WHERE hashtextextended(p_owner || ' server-' || server, 3) NOT IN (SELECT held_claims());
    IF v_gone IS NOT NULL THEN
        DELETE FROM turns WHERE owner = p_owner AND server = ANY (v_gone);
        DELETE FROM listeners WHERE owner = p_owner AND server = ANY (v_gone);
        DELETE FROM questions WHERE owner = p_owner AND server = ANY (v_gone);
    END IF;
    DELETE FROM posts WHERE owner = p_owner AND (server = ANY (v_gone) OR at < now() - interval '1 minute');
END $$;

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['serve_values', 'questions', 'turns', 'listeners', 'posts'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (owner = current_setting(''hone.owner'', true))', v_table);
    END LOOP;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON serve_values, questions, turns, listeners, posts TO hone_app;
        GRANT USAGE ON SEQUENCE post_ids TO hone_app;
    END IF;
END $$;
