#!/usr/bin/env bash
# Notes the time, then becomes the command: stamp.sh COMMAND...
set -euo pipefail
export BENCH_EXEC_AT=$EPOCHREALTIME
exec "$@"
