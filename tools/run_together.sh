# shellcheck shell=bash
# Sourced by tools/deps.sh and tools/test.sh.

# run_together COMMAND...: runs the commands at once; fails if any fails.
run_together() {
  local command pid pids=() bad=0
  for command in "$@"; do
    (eval "$command") &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
  return "$bad"
}
