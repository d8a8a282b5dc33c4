-- Documents of an owner: templates, experiments, long results of tools, what the owner allows and trusts. Each is read and
-- replaced as a whole. `machine` is empty for what all machines share; a folder that is trusted on one machine is another one
-- on the next, so that such a document belongs to the machine whose folders it names.
CREATE TABLE documents (
    owner word NOT NULL,
    machine word NOT NULL,
    kind word NOT NULL,
    name word NOT NULL,
    digest word NOT NULL,
    body bytea NOT NULL,
    at bigint NOT NULL,
    PRIMARY KEY (owner, machine, kind, name)
);
ALTER TABLE documents ENABLE ROW LEVEL SECURITY;
ALTER TABLE documents FORCE ROW LEVEL SECURITY;
CREATE POLICY own_rows ON documents USING (owner = current_setting('hone.owner', true));
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON documents TO hone_app;
    END IF;
END $$;
