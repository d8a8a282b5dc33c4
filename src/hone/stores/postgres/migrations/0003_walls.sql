-- The second wall: whatever a query asks for, it sees the rows of one owner. FORCE: whoever owns the tables is behind it, too.
-- Superusers are not, so Hone works as the role hone_app wherever it may take that role.
DO $$
DECLARE
    v_table text;
BEGIN
    FOR v_table IN SELECT tablename FROM pg_tables WHERE schemaname = 'hone' AND tablename <> 'migrations' LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format(
            'CREATE POLICY own_rows ON %I USING (owner = current_setting(''hone.owner'', true))', v_table
        );
    END LOOP;
END $$;

DO $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        CREATE ROLE hone_app NOLOGIN NOSUPERUSER NOBYPASSRLS;
    END IF;
    GRANT hone_app TO CURRENT_USER;
EXCEPTION
    -- Without the right to make roles, the owner of the tables works itself; it is behind the wall, too.
    WHEN insufficient_privilege OR duplicate_object OR unique_violation THEN NULL;
END $$;

DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT USAGE ON SCHEMA hone TO hone_app;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA hone TO hone_app;
        REVOKE INSERT, UPDATE, DELETE ON migrations FROM hone_app;
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA hone TO hone_app;
    END IF;
END $$;
