#!/bin/sh
# Makes an environment of its own, installs the library from this tree and the auditors, runs what the committed
# table does not have yet, and writes the table. `run.sh --fresh` starts again from nothing.
set -eu
cd "$(dirname "$0")/../.."
venv=${OUTSIDE_AUDITS_VENV:-benchmarks/outside_audits/.venv}
if [ ! -f "$venv/.ready" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q .
  "$venv/bin/pip" install -q -r benchmarks/outside_audits/requirements.txt
  "$venv/bin/pip" install -q --no-deps -r benchmarks/outside_audits/auditors.txt
  touch "$venv/.ready"
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
exec nice "$venv/bin/python" -m benchmarks.outside_audits.run "$@"
