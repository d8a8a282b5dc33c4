#!/bin/sh
# Runs once, when the database is empty: a role that owns its database and nothing else, and the role that it
# works as. Row security binds both.
set -eu
psql --no-psqlrc -v ON_ERROR_STOP=1 -v "password=$(cat "${SECRETS:-/run/secrets}/hone_db_password")" \
    --username "$POSTGRES_USER" --dbname postgres <<'SQL'
CREATE ROLE hone_app NOLOGIN;
CREATE ROLE hone LOGIN PASSWORD :'password' IN ROLE hone_app;
CREATE DATABASE hone OWNER hone;
SQL
