-- The words of each content under a number, in the order in which contents were first said: what came together has numbers
-- next to each other. Appends write nothing here. A search adds what is new first (hone.stores.postgres.passages).
CREATE TABLE passages (
    owner word NOT NULL,
    id bigint NOT NULL,
    content word NOT NULL,
    words tsvector NOT NULL,
    PRIMARY KEY (owner, id),
    UNIQUE (owner, content),
    FOREIGN KEY (owner, content) REFERENCES contents (owner, digest) ON DELETE CASCADE
);
-- Each word begins with a short mark of its owner, so that the index leads to the rows of one owner among many. What waits in
-- the list of an index is read by every search, hence a short one.
CREATE INDEX passages_words ON passages USING gin (words) WITH (gin_pending_list_limit = 1024);

-- Up to which node the contents are in the index, and the last number. Nodes get their ids before they are committed: `seen`
-- is a node up to which all are there as soon as every transaction before `horizon` has ended.
CREATE TABLE backlog (
    owner word PRIMARY KEY,
    upto bigint NOT NULL DEFAULT 0,
    last bigint NOT NULL DEFAULT 0,
    seen bigint NOT NULL DEFAULT 0,
    horizon xid8 NOT NULL DEFAULT '0'
);

-- What was said in a span of time, however often and wherever.
CREATE INDEX nodes_at ON nodes (owner, at);

-- With row security the server asks the policy first and the index second, unless an operator is known to leak nothing. Those
-- of full text are not. So these functions run as the owner of the table, who is not behind its policy, and ask for the rows of
-- one owner themselves. The inner query has no condition on the owner: the index is its only way.
CREATE FUNCTION count_passages(p_queries text[], p_limits integer[]) RETURNS integer[]
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = hone, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_owner text := current_setting('hone.owner');
    v_counts integer[] := '{}';
BEGIN
    FOR place IN 1 .. cardinality(p_queries) LOOP
        v_counts := v_counts || (
            SELECT count(*)::integer FROM (
                SELECT 1 FROM (
                    SELECT owner FROM passages WHERE words @@ p_queries[place]::tsquery OFFSET 0
                ) AS found WHERE owner = v_owner LIMIT p_limits[place]
            ) AS counted
        );
    END LOOP;
    RETURN v_counts;
END $$;

-- For each query so many numbers, the first or the newest ones, of what was said in one of the spans, if any are given.
CREATE FUNCTION find_passages(
    p_queries text[], p_limit integer, p_newest boolean, p_firsts bigint[], p_lasts bigint[]
) RETURNS TABLE (place integer, ids bigint[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = hone, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_owner text := current_setting('hone.owner');
    v_always boolean := cardinality(p_firsts) = 0;
BEGIN
    FOR place IN 1 .. cardinality(p_queries) LOOP
        ids := ARRAY(
            SELECT id FROM (
                SELECT owner, id, content FROM passages WHERE words @@ p_queries[place]::tsquery OFFSET 0
            ) AS found
            WHERE owner = v_owner AND (v_always OR EXISTS (
                SELECT 1 FROM nodes AS n JOIN unnest(p_firsts, p_lasts) AS span (first, last)
                ON n.at BETWEEN span.first AND span.last
                WHERE n.owner = v_owner AND n.content = found.content
            ))
            ORDER BY CASE WHEN p_newest THEN -id ELSE id END LIMIT p_limit
        );
        find_passages.place := place;
        RETURN NEXT;
    END LOOP;
END $$;

-- The first words, by the alphabet, that begin like this, in the newest messages that hold such words.
CREATE FUNCTION find_words(p_beginning text, p_query text, p_messages integer, p_limit integer) RETURNS SETOF text
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = hone, pg_temp SET enable_seqscan = off AS $$
DECLARE
    v_owner text := current_setting('hone.owner');
BEGIN
    RETURN QUERY SELECT DISTINCT lexeme COLLATE "C" FROM (
        SELECT newest.words FROM (
            SELECT owner, id, words FROM passages WHERE words @@ p_query::tsquery OFFSET 0
        ) AS newest WHERE owner = v_owner ORDER BY id DESC LIMIT p_messages
    ) AS chosen CROSS JOIN unnest(chosen.words) WHERE lexeme ^@ p_beginning ORDER BY 1 LIMIT p_limit;
END $$;

REVOKE ALL ON FUNCTION count_passages, find_passages, find_words FROM PUBLIC;

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['passages', 'backlog'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (owner = current_setting(''hone.owner'', true))', v_table);
    END LOOP;
    ALTER TABLE backlog FORCE ROW LEVEL SECURITY;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON passages, backlog TO hone_app;
        GRANT EXECUTE ON FUNCTION count_passages, find_passages, find_words TO hone_app;
    END IF;
END $$;
