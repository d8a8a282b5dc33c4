#!/usr/bin/env bash
# Runs the demo and a few tests with one version of Python, as in `scripts/smoke.sh 3.13`. A version that is not
# on this machine is a printed line and no failure.
set -euo pipefail
cd "$(dirname "$0")/.."
version=$1

# A version manager has names on the PATH for versions that it does not start.
python=
for each in "python$version" "${PYENV_ROOT:-$HOME/.pyenv}/versions/$version".*/bin/python3; do
    if "$each" -c "import sys; sys.exit(sys.version_info[:2] != (${version/./, }))" 2>/dev/null; then
        python=$each
    fi
done
if [ -z "$python" ]; then
    echo "Python $version is not on this machine: not tried"
    exit 0
fi
"$python" -VV
make --no-print-directory VENV=".venv-$version" PYTHON="$python" smoke
