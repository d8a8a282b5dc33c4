-- Steps of several conversations of one owner in one transaction: one message each, and what it cost. It says of each step what
-- `append` says of one: 'done', 'missing' or 'conflict'; only those that are done are written. Locks are taken in the same order,
-- sessions by their ids and contents by their digests, and nothing else is locked: no two such calls wait for each other.
CREATE FUNCTION append_steps(
    p_owner text, p_sessions text[], p_afters text[], p_digests text[], p_bodies bytea[], p_hashes text[], p_trusts smallint[],
    p_ats bigint[], p_spent_ats bigint[], p_models text[], p_origins text[], p_inputs bigint[], p_cached bigint[],
    p_written bigint[], p_outputs bigint[], p_costs double precision[]
) RETURNS text[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    v_known text[];
    v_steps integer[];
    v_ids bigint[];
BEGIN
    PERFORM enter(p_owner, false);
    v_known := ARRAY(
        SELECT id FROM sessions WHERE owner = p_owner AND id = ANY (p_sessions) ORDER BY id COLLATE "C" FOR UPDATE
    );
    v_steps := ARRAY(
        SELECT step FROM generate_subscripts(p_sessions, 1) AS step
        JOIN sessions AS s ON s.owner = p_owner AND s.id = p_sessions[step] AND s.hash = p_afters[step]
    );
    v_ids := ARRAY(SELECT nextval('node_ids') FROM unnest(v_steps));
    INSERT INTO contents (owner, digest, body)
    SELECT p_owner, p_digests[step], p_bodies[step] FROM unnest(v_steps) AS step ORDER BY p_digests[step] COLLATE "C"
    ON CONFLICT DO NOTHING;
    INSERT INTO nodes (owner, id, chain, parent, content, depth, trust, at, hash)
    SELECT p_owner, v_ids[place], s.chain, s.head, p_digests[step], s.messages + 1, p_trusts[step], p_ats[step], p_hashes[step]
    FROM unnest(v_steps) WITH ORDINALITY AS given (step, place)
    JOIN sessions AS s ON s.owner = p_owner AND s.id = p_sessions[step];
    UPDATE sessions AS s SET head = v_ids[place], messages = s.messages + 1, updated = p_ats[step], touched = nextval('touches'),
        hash = p_hashes[step]
    FROM unnest(v_steps) WITH ORDINALITY AS given (step, place) WHERE s.owner = p_owner AND s.id = p_sessions[step];
    INSERT INTO spending (owner, session, at, model, origin, input, cached, written, output, cost)
    SELECT p_owner, p_sessions[step], p_spent_ats[step], p_models[step], p_origins[step], p_inputs[step], p_cached[step],
        p_written[step], p_outputs[step], p_costs[step]
    FROM unnest(v_steps) AS step WHERE p_spent_ats[step] IS NOT NULL;
    RETURN ARRAY(
        SELECT CASE WHEN step = ANY (v_steps) THEN 'done' WHEN p_sessions[step] = ANY (v_known) THEN 'conflict' ELSE 'missing' END
        FROM generate_subscripts(p_sessions, 1) AS step ORDER BY step
    );
END $$;
