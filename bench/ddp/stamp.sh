#!/usr/bin/env bash
# stamp.sh COMMAND...: executes COMMAND with the time of the exec in BENCH_EXEC_AT.
set -euo pipefail
export BENCH_EXEC_AT=$EPOCHREALTIME
exec "$@"
