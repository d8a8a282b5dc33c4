-- What tools did to files, as in checkpoints.db of a home (features/checkpoints). A path belongs to a machine, and so does every
-- row here: no rewind may touch a file of another machine. Views show the rows of one owner and one machine, `hone.machine`;
-- an asterisk stands for all machines, so that words can be erased and old rows deleted wherever they were written.
CREATE SEQUENCE checkpoint_ids;

CREATE TABLE checkpoint_blobs (
    owner word NOT NULL DEFAULT current_setting('hone.owner'),
    machine word NOT NULL DEFAULT current_setting('hone.machine'),
    digest word NOT NULL,
    size bigint NOT NULL,
    data bytea NOT NULL,
    PRIMARY KEY (owner, machine, digest)
);

CREATE TABLE checkpoint_rewinds (
    owner word NOT NULL DEFAULT current_setting('hone.owner'),
    machine word NOT NULL DEFAULT current_setting('hone.machine'),
    id bigint NOT NULL DEFAULT nextval('checkpoint_ids'),
    session word NOT NULL,
    turn bigint NOT NULL,
    at bigint NOT NULL,
    finished bigint NOT NULL,
    redoes bigint NOT NULL,
    PRIMARY KEY (owner, machine, id)
);

CREATE TABLE checkpoint_changes (
    owner word NOT NULL DEFAULT current_setting('hone.owner'),
    machine word NOT NULL DEFAULT current_setting('hone.machine'),
    id bigint NOT NULL DEFAULT nextval('checkpoint_ids'),
    session word NOT NULL,
    turn bigint NOT NULL,
    anchor word NOT NULL,
    path bytea NOT NULL,
    before_kind word,
    before_mode bigint,
    before_digest word,
    after_kind word,
    after_mode bigint,
    after_digest word,
    by word NOT NULL,
    at bigint NOT NULL,
    lost word NOT NULL,
    open bigint NOT NULL,
    expected word NOT NULL,
    rewind bigint NOT NULL,
    taken_back bigint NOT NULL,
    PRIMARY KEY (owner, machine, id)
);
CREATE INDEX checkpoint_changes_session ON checkpoint_changes (owner, machine, session, turn, id);
-- A path may be longer than an index can hold.
CREATE INDEX checkpoint_changes_path ON checkpoint_changes (owner, machine, md5(path), id);
CREATE INDEX checkpoint_changes_before ON checkpoint_changes (owner, machine, before_digest);

DO $$
DECLARE
    v_table text;
    v_columns text;
    v_option text := CASE WHEN current_setting('server_version_num')::int >= 150000 THEN 'WITH (security_invoker = true)' ELSE '' END;
    v_role boolean := EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app');
BEGIN
    FOREACH v_table IN ARRAY ARRAY['checkpoint_blobs', 'checkpoint_rewinds', 'checkpoint_changes'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (owner = current_setting(''hone.owner'', true))', v_table);
        SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) INTO v_columns FROM pg_attribute
        WHERE attrelid = v_table::regclass AND attnum > 0 AND attname NOT IN ('owner', 'machine');
        EXECUTE format(
            'CREATE VIEW %I %s AS SELECT %s FROM %I WHERE owner = current_setting(''hone.owner'') AND '
            '(machine = current_setting(''hone.machine'') OR current_setting(''hone.machine'') = ''*'')',
            replace(v_table, 'checkpoint_', 'own_'), v_option, v_columns, v_table
        );
        IF v_role THEN
            EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I, %I TO hone_app',
                v_table, replace(v_table, 'checkpoint_', 'own_'));
        END IF;
    END LOOP;
    IF v_role THEN
        GRANT USAGE ON SEQUENCE checkpoint_ids TO hone_app;
    END IF;
END $$;
