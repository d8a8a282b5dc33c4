#!/bin/sh
# Install the servers from npm that tests talk to, at fixed versions, below .venv/node. Without npm, or without
# a registry, the tests that need them are skipped with a reason.
set -eu
place="${1:-.venv}/node"
version=2026.8.31
[ -e "$place/.installed-$version" ] && exit 0
command -v npm >/dev/null 2>&1 || { echo "npm is not installed; tests with its servers are skipped"; exit 0; }
mkdir -p "$place"
echo '{"private": true}' >"$place/package.json"
packages=""
for name in everything filesystem memory; do
	packages="$packages @modelcontextprotocol/server-$name@$version"
done
# The system's certificates, as for Python's packages.
export NODE_OPTIONS="--use-openssl-ca ${NODE_OPTIONS:-}"
flags="--silent --no-audit --no-fund --no-package-lock --ignore-scripts --fetch-retries=0 --fetch-timeout=20000"
# shellcheck disable=SC2086
if timeout 120 npm install --prefix "$place" $flags $packages; then
	touch "$place/.installed-$version"
else
	echo "npm cannot install the servers; tests with them are skipped"
fi
