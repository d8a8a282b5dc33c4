-- Locks are taken in one order, whoever writes: the owner's gate, the session's row, its tree, the owner's row, contents by
-- their digests. Then no two writers wait for each other.

-- Begin to write as an owner. Most writers pass the gate together; who deletes or decides over several conversations passes
-- alone. Returns the transaction's number, by which its fate can be asked for when a connection breaks at its end.
CREATE FUNCTION enter(p_owner text, p_alone boolean) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('hone.owner', p_owner, true);
    IF p_alone THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(p_owner, 1));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(p_owner, 1));
    END IF;
    RETURN pg_current_xact_id()::text;
END $$;

-- Lock the owner's row, which is made if there is none.
CREATE FUNCTION lock_owner(p_owner text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM owners WHERE owner = p_owner FOR UPDATE;
    IF NOT FOUND THEN
        INSERT INTO owners (owner) VALUES (p_owner) ON CONFLICT DO NOTHING;
        PERFORM 1 FROM owners WHERE owner = p_owner FOR UPDATE;
    END IF;
END $$;

CREATE FUNCTION next_job(p_owner text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_id bigint;
BEGIN
    PERFORM lock_owner(p_owner);
    UPDATE owners SET jobs = jobs + 1 WHERE owner = p_owner RETURNING jobs INTO v_id;
    RETURN v_id;
END $$;

-- Add nodes after a place; returns the id of the last one. Contents come in the order of their digests.
CREATE FUNCTION put_nodes(
    p_owner text, p_chain bigint, p_parent bigint, p_depth integer, p_digests text[], p_bodies bytea[],
    p_nodes text[], p_hashes text[], p_trusts smallint[], p_ats bigint[], p_formers bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[];
    v_count integer := cardinality(p_nodes);
BEGIN
    IF v_count = 0 THEN
        RETURN p_parent;
    END IF;
    INSERT INTO contents (owner, digest, body)
    SELECT p_owner, given.digest, given.body FROM unnest(p_digests, p_bodies) AS given (digest, body)
    ON CONFLICT DO NOTHING;
    v_ids := ARRAY(SELECT nextval('node_ids') FROM generate_series(1, v_count));
    INSERT INTO nodes (owner, id, chain, parent, former, content, depth, trust, at, hash)
    SELECT p_owner, v_ids[place], p_chain, CASE WHEN place = 1 THEN p_parent ELSE v_ids[place - 1] END,
        p_formers[place], p_nodes[place], p_depth + place, p_trusts[place], p_ats[place], p_hashes[place]
    FROM generate_series(1, v_count) AS given (place);
    RETURN v_ids[v_count];
END $$;

-- Put off the look at a session; add what makes it a reason for one. `p_name` is the session's id in JSON.
CREATE FUNCTION put_look(
    p_owner text, p_session text, p_tree text, p_messages integer, p_folder text, p_due bigint, p_cue text,
    p_turns integer, p_tainted boolean, p_new boolean, p_since bigint, p_name text
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_cue text := p_cue;
BEGIN
    IF NOT p_new THEN
        UPDATE looks SET messages = p_messages, due = p_due, tainted = tainted OR p_tainted
        WHERE owner = p_owner AND session = p_session;
        RETURN;
    END IF;
    IF v_cue = '' AND p_since IS NOT NULL AND EXISTS (
        SELECT 1 FROM (
            SELECT session, others, created FROM jobs WHERE owner = p_owner ORDER BY id DESC LIMIT 64
        ) AS latest
        WHERE created > p_since AND (session = p_session OR position(p_name IN others) > 0)
    ) THEN
        v_cue := 'what followed a review';
    END IF;
    INSERT INTO looks AS known (owner, session, tree, messages, folder, due, cue, turns, tainted)
    VALUES (p_owner, p_session, p_tree, p_messages, p_folder, p_due, v_cue, p_turns, p_tainted)
    ON CONFLICT (owner, session) DO UPDATE SET messages = excluded.messages, due = excluded.due,
        turns = known.turns + excluded.turns, tainted = known.tainted OR excluded.tainted,
        cue = CASE WHEN known.cue IN ('', 'a turn that was cut off') THEN excluded.cue
            WHEN known.cue = 'what followed a review' AND excluded.cue NOT IN ('', 'a turn that was cut off')
            THEN excluded.cue ELSE known.cue END;
END $$;

-- One call for all that a step of a conversation stores: nodes and contents, spending, counters, the look, and the review
-- that becomes due. It checks the head and says 'missing' or 'conflict' before anything is written.
CREATE FUNCTION append(
    p_owner text, p_session text, p_after text,
    p_digests text[], p_bodies bytea[], p_nodes text[], p_hashes text[], p_trusts smallint[], p_ats bigint[],
    p_opened integer, p_opening text,
    p_spent_at bigint, p_model text, p_origin text, p_input bigint, p_cached bigint, p_written bigint, p_output bigint,
    p_cost double precision,
    p_topics text[], p_adds bigint[], p_intervals bigint[], p_resets boolean[], p_whys text[],
    p_look_due bigint, p_cue text, p_turns integer, p_tainted boolean, p_new boolean, p_since bigint, p_wider text[],
    p_name text,
    OUT outcome text, OUT job bigint
) LANGUAGE plpgsql AS $$
DECLARE
    v_session sessions%ROWTYPE;
    v_head bigint;
    v_count integer := cardinality(p_nodes);
    v_messages integer;
    v_at bigint;
    v_before bigint;
    v_after bigint;
    v_due text[] := '{}';
    v_why text := '';
BEGIN
    PERFORM enter(p_owner, false);
    SELECT * INTO v_session FROM sessions WHERE owner = p_owner AND id = p_session FOR UPDATE;
    IF NOT FOUND THEN
        outcome := 'missing';
        RETURN;
    END IF;
    IF p_after IS NOT NULL AND p_after <> v_session.hash THEN
        outcome := 'conflict';
        RETURN;
    END IF;
    v_messages := v_session.messages + v_count;
    v_at := CASE WHEN v_count > 0 THEN p_ats[v_count] ELSE v_session.updated END;
    IF cardinality(p_topics) > 0 THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(p_owner || ' ' || v_session.tree, 2));
        FOR place IN 1 .. cardinality(p_topics) LOOP
            v_before := coalesce((
                SELECT count FROM counts WHERE owner = p_owner AND tree = v_session.tree AND topic = p_topics[place]
            ), 0);
            v_after := CASE WHEN p_resets[place] THEN 0 ELSE v_before + p_adds[place] END;
            IF p_intervals[place] > 0 AND v_after >= p_intervals[place] THEN
                v_after := 0;
                v_due := v_due || p_topics[place];
                v_why := v_why || CASE WHEN v_why <> '' AND p_whys[place] <> '' THEN ' and ' ELSE '' END || p_whys[place];
            END IF;
            IF v_after <> v_before THEN
                INSERT INTO counts (owner, tree, topic, count)
                VALUES (p_owner, v_session.tree, p_topics[place], v_after)
                ON CONFLICT (owner, tree, topic) DO UPDATE SET count = excluded.count;
            END IF;
        END LOOP;
    END IF;
    IF v_due <> '{}' THEN
        -- It reads everything anyway, and so it is about the wider topics, too.
        UPDATE counts SET count = 0 WHERE owner = p_owner AND tree = v_session.tree AND topic = ANY (p_wider);
        DELETE FROM looks WHERE owner = p_owner AND session = p_session;
        job := next_job(p_owner);
        INSERT INTO jobs (owner, id, session, tree, messages, topics, created, why)
        VALUES (p_owner, job, p_session, v_session.tree, v_messages, array_to_json(ARRAY(
            SELECT DISTINCT topic COLLATE "C" FROM unnest(v_due || p_wider) AS given (topic) ORDER BY 1
        ))::text, v_at, v_why);
    END IF;
    v_head := put_nodes(
        p_owner, v_session.chain, v_session.head, v_session.messages, p_digests, p_bodies, p_nodes, p_hashes, p_trusts,
        p_ats, '{}'
    );
    UPDATE sessions SET head = v_head, messages = v_messages, updated = v_at, touched = nextval('touches'),
        hash = CASE WHEN v_count > 0 THEN p_hashes[v_count] ELSE hash END,
        opened = CASE WHEN opened = 0 AND p_opened > 0 THEN messages + p_opened ELSE opened END,
        opening = CASE WHEN opened = 0 AND p_opened > 0 THEN p_opening ELSE opening END
    WHERE owner = p_owner AND id = p_session;
    IF p_spent_at IS NOT NULL THEN
        INSERT INTO spending (owner, session, at, model, origin, input, cached, written, output, cost)
        VALUES (p_owner, p_session, p_spent_at, p_model, p_origin, p_input, p_cached, p_written, p_output, p_cost);
    END IF;
    IF p_look_due IS NOT NULL AND job IS NULL THEN
        PERFORM put_look(
            p_owner, p_session, v_session.tree, v_messages, v_session.folder, p_look_due, p_cue, p_turns, p_tainted, p_new,
            p_since, p_name
        );
    END IF;
    outcome := 'done';
END $$;

-- Remove what nobody needs any more of a line: its head, the nodes before, and what they were before a move.
CREATE FUNCTION prune(p_owner text, p_head bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_waiting bigint[] := ARRAY[p_head];
    v_node bigint;
    v_gone record;
    v_prefix text;
BEGIN
    WHILE cardinality(v_waiting) > 0 LOOP
        v_node := v_waiting[cardinality(v_waiting)];
        v_waiting := trim_array(v_waiting, 1);
        SELECT parent, former, content, chain INTO v_gone FROM nodes WHERE owner = p_owner AND id = v_node;
        CONTINUE WHEN NOT FOUND
            OR EXISTS (SELECT 1 FROM nodes WHERE owner = p_owner AND parent = v_node)
            OR EXISTS (SELECT 1 FROM sessions WHERE owner = p_owner AND chain = v_gone.chain AND head = v_node)
            OR EXISTS (SELECT 1 FROM nodes WHERE owner = p_owner AND former = v_node);
        DELETE FROM nodes WHERE owner = p_owner AND id = v_node;
        DELETE FROM contents WHERE owner = p_owner AND digest = v_gone.content AND NOT EXISTS (
            SELECT 1 FROM nodes WHERE owner = p_owner AND content = v_gone.content
        );
        IF v_gone.parent IS NULL THEN
            DELETE FROM chains WHERE owner = p_owner AND id = v_gone.chain RETURNING prefix INTO v_prefix;
            DELETE FROM prefixes WHERE owner = p_owner AND digest = v_prefix AND NOT EXISTS (
                SELECT 1 FROM chains WHERE owner = p_owner AND prefix = v_prefix
            );
        END IF;
        v_waiting := v_waiting || ARRAY[v_gone.parent, v_gone.former];
    END LOOP;
END $$;
