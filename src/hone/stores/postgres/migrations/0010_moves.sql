-- The last move of an owner's data. `home` is the name of the home that the data came from or went to, `place` is where that
-- home lies, `digest` stands for all rows as they were then. `away`: they went, and nobody writes here any more.
CREATE TABLE moves (
    owner word PRIMARY KEY,
    home word NOT NULL,
    place word NOT NULL,
    at bigint NOT NULL,
    digest word NOT NULL,
    away boolean NOT NULL
);
ALTER TABLE moves ENABLE ROW LEVEL SECURITY;
ALTER TABLE moves FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON moves USING (owner = current_setting('hone.owner', true));
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON moves TO hone_app;
    END IF;
END $$;

-- What was erased, by numbers and names only, as in a home: a backup from before is erased by it.
CREATE TABLE erasures (
    owner word NOT NULL,
    id bigint NOT NULL,
    name word NOT NULL,
    at bigint NOT NULL,
    what word NOT NULL,
    finished boolean NOT NULL,
    PRIMARY KEY (owner, id)
);
ALTER TABLE erasures ENABLE ROW LEVEL SECURITY;
ALTER TABLE erasures FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON erasures USING (owner = current_setting('hone.owner', true));
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON erasures TO hone_app;
    END IF;
END $$;

-- Begin to write as an owner, wherever the data is. Only a move does that; everybody else enters.
CREATE FUNCTION pass_gate(p_owner text, p_alone boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('hone.owner', p_owner, true);
    IF p_alone THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(p_owner, 1));
    ELSE
        PERFORM pg_advisory_xact_lock_shared(hashtextextended(p_owner, 1));
    END IF;
END $$;

-- As in 0002, but refuse an owner whose data has moved away: a server that was running meanwhile must not continue here.
CREATE OR REPLACE FUNCTION enter(p_owner text, p_alone boolean) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    v_place text;
BEGIN
    PERFORM pass_gate(p_owner, p_alone);
    SELECT place INTO v_place FROM moves WHERE owner = p_owner AND away;
    IF FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'HN001', MESSAGE = v_place;
    END IF;
    RETURN pg_current_xact_id()::text;
END $$;
