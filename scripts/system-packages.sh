#!/usr/bin/env bash
# Brings in the programs that tests need. Each argument is binary:package.
set -euo pipefail

missing=()
for pair in "$@"; do
    command -v "${pair%%:*}" >/dev/null || missing+=("${pair##*:}")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]} with apt-get"
    export DEBIAN_FRONTEND=noninteractive
    if log=$({ apt-get update -q && apt-get install -qy --no-install-recommends "${missing[@]}"; } 2>&1); then
        exit 0
    fi
    tail -n 5 <<<"$log"
fi
echo "not installed, the tests that need them will be skipped: ${missing[*]}"
