#!/usr/bin/env bash
# Runs a command as an ordinary user. Root, whom no permission stops, becomes a user without an account, with a
# home of its own; this user only needs to read the checkout and Python.
set -euo pipefail
[ "$(id -u)" -eq 0 ] || exec "$@"

user=65531
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir "$home/tmp"
chown -R "$user:$user" "$home"
as_user=(setpriv --reuid "$user" --regid "$user" --clear-groups --inh-caps=-all)
settings=(PATH="$PATH" HOME="$home" TMPDIR="$home/tmp" PYTHONDONTWRITEBYTECODE=1 LANG="${LANG:-C.UTF-8}")
[ -z "${CI:-}" ] || settings+=(CI="$CI")

status=0
"${as_user[@]}" env -i "${settings[@]}" "$@" || status=$?
if [ "$status" -eq 126 ] || [ "$status" -eq 127 ]; then
    echo "an ordinary user cannot start $1: the checkout and Python must lie where everybody may read them" >&2
fi
exit "$status"
