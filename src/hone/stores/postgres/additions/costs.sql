-- What an append and its share of the index cost (docs/decisions/044). A statement in a function is started, checked and ended by
-- the executor, which takes longer than what it does here; `PERFORM` is one, too. A call that is assigned is not.

-- As in 0010.
CREATE OR REPLACE FUNCTION pass_gate(p_owner text, p_alone boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    v_none text;
BEGIN
    v_none := set_config('hone.owner', p_owner, true);
    v_none := CASE WHEN p_alone THEN pg_advisory_xact_lock(hashtextextended(p_owner, 1))::text
        ELSE pg_advisory_xact_lock_shared(hashtextextended(p_owner, 1))::text END;
END $$;

CREATE OR REPLACE FUNCTION enter(p_owner text, p_alone boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_none text;
    v_place text;
BEGIN
    v_none := pass_gate(p_owner, p_alone)::text;
    SELECT place INTO v_place FROM moves WHERE owner = p_owner AND away;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HN001', MESSAGE = v_place;
    END IF;
    RETURN pg_current_xact_id()::text;
END $$;

-- As in 0002.
CREATE OR REPLACE FUNCTION put_nodes(
    p_owner text, p_chain bigint, p_parent bigint, p_depth integer, p_digests text[], p_bodies bytea[],
    p_nodes text[], p_hashes text[], p_trusts smallint[], p_ats bigint[], p_formers bigint[]
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    v_ids bigint[] := ARRAY[p_parent];
    v_count integer := cardinality(p_nodes);
BEGIN
    IF v_count = 0 THEN
        RETURN p_parent;
    END IF;
    INSERT INTO contents (owner, digest, body)
    SELECT p_owner, given.digest, given.body FROM unnest(p_digests, p_bodies) AS given (digest, body)
    ON CONFLICT DO NOTHING;
    FOR place IN 1 .. v_count LOOP
        v_ids[place + 1] := nextval('node_ids');
    END LOOP;
    INSERT INTO nodes (owner, id, chain, parent, former, content, depth, trust, at, hash)
    SELECT p_owner, v_ids[place + 1], p_chain, v_ids[place], p_formers[place], p_nodes[place], p_depth + place, p_trusts[place],
        p_ats[place], p_hashes[place]
    FROM generate_series(1, v_count) AS given (place);
    RETURN v_ids[v_count + 1];
END $$;

-- As in 0002. Counters are read and written with one statement each, and statements are planned once: an array of two messages looks
-- cheaper than one of unknown length, so that they were planned anew each time.
CREATE OR REPLACE FUNCTION append(
    p_owner text, p_session text, p_after text,
    p_digests text[], p_bodies bytea[], p_nodes text[], p_hashes text[], p_trusts smallint[], p_ats bigint[],
    p_opened integer, p_opening text,
    p_spent_at bigint, p_model text, p_origin text, p_input bigint, p_cached bigint, p_written bigint, p_output bigint,
    p_cost double precision,
    p_topics text[], p_adds bigint[], p_intervals bigint[], p_resets boolean[], p_whys text[],
    p_look_due bigint, p_cue text, p_turns integer, p_tainted boolean, p_new boolean, p_since bigint, p_wider text[],
    p_name text,
    OUT outcome text, OUT job bigint
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_none text;
    v_session sessions%ROWTYPE;
    v_head bigint;
    v_count integer := cardinality(p_nodes);
    v_messages integer;
    v_at bigint;
    v_counts bigint[];
    v_after bigint;
    v_changed integer[] := '{}';
    v_due text[] := '{}';
    v_why text := '';
BEGIN
    v_none := enter(p_owner, false);
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
        v_none := pg_advisory_xact_lock(hashtextextended(p_owner || ' ' || v_session.tree, 2))::text;
        v_counts := ARRAY(
            SELECT coalesce(
                (SELECT count FROM counts WHERE owner = p_owner AND tree = v_session.tree AND topic = p_topics[place]), 0
            )
            FROM generate_series(1, cardinality(p_topics)) AS given (place)
        );
        FOR place IN 1 .. cardinality(p_topics) LOOP
            v_after := CASE WHEN p_resets[place] THEN 0 ELSE v_counts[place] + p_adds[place] END;
            IF p_intervals[place] > 0 AND v_after >= p_intervals[place] THEN
                v_after := 0;
                v_due := v_due || p_topics[place];
                v_why := v_why || CASE WHEN v_why <> '' AND p_whys[place] <> '' THEN ' and ' ELSE '' END || p_whys[place];
            END IF;
            IF v_after <> v_counts[place] THEN
                v_counts[place] := v_after;
                v_changed := v_changed || place;
            END IF;
        END LOOP;
        IF v_changed <> '{}' THEN
            INSERT INTO counts (owner, tree, topic, count)
            SELECT p_owner, v_session.tree, p_topics[place], v_counts[place] FROM unnest(v_changed) AS given (place)
            ON CONFLICT (owner, tree, topic) DO UPDATE SET count = excluded.count;
        END IF;
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
        v_none := put_look(
            p_owner, p_session, v_session.tree, v_messages, v_session.folder, p_look_due, p_cue, p_turns, p_tainted, p_new,
            p_since, p_name
        )::text;
    END IF;
    outcome := 'done';
END $$;

-- Compressing a message took as long as writing it. One of up to 8 kB stays whole in its row; a longer one is compressed as before.
ALTER TABLE contents SET (toast_tuple_target = 8160);

-- The words of a message lie beside its row, as they are: a search that counts rows then reads fifty of them per page.
ALTER TABLE passages ALTER words SET STORAGE EXTERNAL;

-- What waits in the list of the index is added to it in one go: four times as much costs a third less per message, and 0.2 ms per
-- search.
ALTER INDEX passages_words SET (gin_pending_list_limit = 4096);
