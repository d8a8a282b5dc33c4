-- Vectors of messages under the numbers of their passages, and those of short texts by digest, as in SQLite. An embedder is
-- known by a number of its owner's; the one that was adopted last may add vectors.
CREATE TABLE embedders (
    owner word NOT NULL,
    id integer NOT NULL,
    name word NOT NULL,
    adopted bigint NOT NULL,
    PRIMARY KEY (owner, id),
    UNIQUE (owner, name)
);
CREATE TABLE vectors (
    owner word NOT NULL,
    content bigint NOT NULL,
    embedder integer NOT NULL,
    vector bytea NOT NULL,
    PRIMARY KEY (owner, content),
    FOREIGN KEY (owner, content) REFERENCES passages (owner, id) ON DELETE CASCADE
);
CREATE INDEX vectors_embedder ON vectors (owner, embedder, content);

CREATE SEQUENCE meaning_ids;
CREATE TABLE meanings (
    owner word NOT NULL,
    embedder integer NOT NULL,
    digest bytea NOT NULL,
    vector bytea NOT NULL,
    id bigint NOT NULL DEFAULT nextval('meaning_ids'),
    PRIMARY KEY (owner, embedder, digest)
);
CREATE INDEX meanings_id ON meanings (owner, id);

-- With pgvector the server finds the nearest of an owner's vectors; without it, meaning only weighs what words found.
DO $$
DECLARE
    v_schema text;
BEGIN
    IF EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector') THEN
        BEGIN
            CREATE EXTENSION IF NOT EXISTS vector;
        EXCEPTION
            WHEN OTHERS THEN NULL;  -- no right to, or a broken installation: it is optional
        END;
    END IF;
    SELECT nspname INTO v_schema FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'vector';
    IF FOUND THEN
        EXECUTE format('ALTER TABLE vectors ADD COLUMN near %I.vector', v_schema);
    END IF;
END $$;

DO $$
DECLARE
    v_table text;
BEGIN
    FOREACH v_table IN ARRAY ARRAY['embedders', 'vectors', 'meanings'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', v_table);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', v_table);
        EXECUTE format('CREATE POLICY own_rows ON %I USING (owner = current_setting(''hone.owner'', true))', v_table);
    END LOOP;
    IF EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'hone_app') THEN
        GRANT SELECT, INSERT, UPDATE, DELETE ON embedders, vectors, meanings TO hone_app;
        GRANT USAGE ON SEQUENCE meaning_ids TO hone_app;
    END IF;
END $$;
