#!/bin/sh
# Secrets are files. One whose name is that of a variable, such as HONE_DATABASE, becomes that variable.
set -eu
for file in "${SECRETS:-/run/secrets}"/[A-Z]*; do
    if [ -f "$file" ]; then
        export "${file##*/}=$(cat "$file")"
    fi
done
unset SECRETS file
exec "$@"
