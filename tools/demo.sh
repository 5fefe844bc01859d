#!/usr/bin/env bash
# A demonstration from a clean clone: builds cpprun, trains with two workers, kills one of them, and
# shows that training resumes from its snapshot. Then it runs the same job with two agents, as on
# two machines, kills one agent and starts a replacement. Last it kills one worker of a loop with
# cpprun_worker.elastic, whose other workers keep their processes. Exits 0 only if it has observed
# all that.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

epochs=20          # training epochs of the example
kill_after=6       # completed training epochs before the kill
limit=180          # seconds for the training; it takes about 20
wanted_accuracy=95 # percent

show() { printf '\n\033[1m%s\033[0m\n' "$*" | { if [ -t 1 ]; then cat; else tr -d '\033' |
  sed 's/\[1m//; s/\[0m//'; fi; }; }

build() {
  show "1. Installing what is missing: a compiler, Boost, and a Python with torch in .venv"
  tools/deps.sh --python
  show "2. Building cpprun (the launcher itself needs neither Python nor torch)"
  cmake --preset release >/dev/null
  cmake --build --preset release -j "$(nproc)" | tail -n 1
}

# wait_for TEXT: waits for it in the output; fails if the launcher ends or the time is over.
wait_for() {
  until grep -q "$1" "$work/out"; do
    kill -0 "$launcher" 2>/dev/null || return 1
    [ "$SECONDS" -lt "$deadline" ] || return 1
    sleep 0.05
  done
}

give_up() {
  printf '\nThe demo FAILED: %s\n' "$*" >&2
  exit 1
}

clean_up() {
  local status=$? agent
  for agent in "$launcher" "${agents[@]}"; do
    if [ -n "$agent" ] && kill -TERM "$agent" 2>/dev/null; then wait "$agent" || true; fi
  done
  if [ -n "$viewer" ] && kill "$viewer" 2>/dev/null; then wait "$viewer" || true; fi
  rm -rf "$work"
  exit "$status"
}

# start_job COMMAND...: starts the job; sets `launcher` to its pid, and shows its output.
start_job() {
  echo "   $*"
  PATH=$root/build/release/bin:$root/.venv/bin:$PATH "$@" >"$work/out" 2>&1 &
  launcher=$!
  tail -n +1 -s 0.1 --pid="$launcher" -f "$work/out" | sed -u 's/^/   | /' &
  viewer=$!
  deadline=$((SECONDS + limit))
}

# Waits for the end of the job, which must be a success.
end_job() {
  local status=0
  wait "$launcher" || status=$?
  launcher=
  wait "$viewer" || true
  viewer=
  [ "$status" = 0 ] || give_up "cpprun ended with exit code $status, not 0"
}

train() {
  show "3. Training a digit reader with two workers on this machine:"
  start_job cpprun --standalone --nproc_per_node=2 --max_restarts=3 --preload=auto --timing \
    examples/python/digits_ddp.py --epochs "$epochs" --snapshot "$work/digits" --sleep 0.2

  wait_for "training epoch $kill_after of $epochs done" || give_up "training did not get going"
  local victim
  victim=$(sed -n 's/.*\[rank 1\] started as process \([0-9]*\),.*/\1/p' "$work/out" | tail -n 1)
  show "4. Killing worker 1 (process $victim) with kill -9, as a machine out of memory would"
  kill -KILL "$victim"
  local killed_at=${EPOCHREALTIME//[.,]/} restarted_at
  wait_for 'resuming from snapshot' || give_up "training did not resume after the kill"
  restarted_at=${EPOCHREALTIME//[.,]/}
  show "5. cpprun saw it, stopped the other worker and started both again, from the snapshot" \
    "($(((restarted_at - killed_at) / 1000)) ms later: --preload imports torch once," \
    "and forks the workers)"
  wait_for 'test accuracy' || give_up "the restarted training did not finish"
}

check_result() {
  local accuracy
  end_job
  accuracy=$(sed -n 's/.*test accuracy \([0-9.]*\) %.*/\1/p' "$work/out" | tail -n 1)
  [ "$(grep -c 'resuming from snapshot' "$work/out")" = 1 ] || give_up "it did not resume once"
  awk -v a="$accuracy" -v w="$wanted_accuracy" 'BEGIN { exit !(a >= w) }' ||
    give_up "test accuracy is $accuracy %, below $wanted_accuracy %"
  show "6. Done. One worker was killed, nothing was lost but the training epoch it was in:"
  sed -n 's/.*\] \(resuming from .*\)/   \1/p' "$work/out"
  echo "   test accuracy $accuracy % (at least $wanted_accuracy % was asked for), exit code 0"
}

# start_agent NAME: starts another agent of the two-node job; sets `launcher` to its pid.
start_agent() {
  PATH=$root/build/release/bin:$root/.venv/bin:$PATH "${elastic[@]}" \
    > >(sed -u "s/^/   | $1: /" >>"$work/nodes") 2>&1 &
  launcher=$!
  agents+=("$launcher")
}

# Loses a node and replaces it. On a cluster you start an agent on each machine, with the name of
# one of them instead of localhost.
replace_node() {
  local port status=0
  port=$(python3 -c 'import socket; print(socket.create_server(("", 0)).getsockname()[1])')
  elastic=(cpprun --nnodes=2 --nproc_per_node=1 --rdzv_backend=c10d --rdzv_id=digits
    --rdzv_endpoint="localhost:$port" examples/python/digits_ddp.py --epochs "$epochs"
    --snapshot "$work/nodes-snapshots" --sleep 0.2)
  show "7. Now over two nodes, each with an agent of its own (here both on this machine):"
  echo "   ${elastic[*]}"
  touch "$work/nodes"
  rm -f "$work/out"
  ln -s nodes "$work/out"
  tail -n +1 -s 0.1 -f "$work/nodes" &
  viewer=$!
  deadline=$((SECONDS + limit))
  start_agent A
  local first=$launcher
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do  # the other agents connect to A
    kill -0 "$first" 2>/dev/null || give_up "agent A did not start"
    sleep 0.05
  done
  start_agent B
  wait_for "training epoch $kill_after of $epochs done" || give_up "the two agents did not train"
  show "8. Killing agent B with kill -9, as if its machine had lost power"
  kill -KILL "$launcher"
  { wait "$launcher"; } 2>/dev/null || true
  show "9. Agent A saw it and waits for another node. Starting agent C in the place of B"
  start_agent C
  wait_for 'resuming from snapshot' || give_up "training did not resume with the new agent"
  wait_for 'test accuracy' || give_up "training over two nodes did not finish"
  for launcher in "$launcher" "$first"; do
    wait "$launcher" || status=$?
  done
  launcher=''
  agents=()
  kill "$viewer"
  { wait "$viewer"; } 2>/dev/null || true
  viewer=''
  [ "$status" = 0 ] || give_up "an agent ended with exit code $status, not 0"
  show "10. Done. A node was lost and replaced; both agents ended with exit code 0:"
  sed -n 's/.*\] \(resuming from .*\)/   \1/p' "$work/nodes"
  sed -n 's/.*\(test accuracy [0-9.]* %\).*/   \1/p' "$work/nodes"
}

# A worker dies, and the others continue in their processes.
keep_survivors() {
  rm -f "$work/out"
  show "11. Now with a loop of cpprun_worker.elastic, and three workers:"
  start_job cpprun --standalone --nproc_per_node=3 --max_restarts=3 --preload=torch \
    examples/python/elastic_loop.py --steps 200 --sleep 0.02
  wait_for 'step 50 of' || give_up "the loop did not get going"
  local victim
  victim=$(sed -n 's/.*\[rank 1\] process \([0-9]*\) .*/\1/p' "$work/out" | head -n 1)
  show "12. Killing worker 1 (process $victim) with kill -9"
  kill -KILL "$victim"
  wait_for '2 workers stay, 1 is replaced' || give_up "the other workers did not stay"
  wait_for 'all steps done' || give_up "the loop did not finish"
  end_job
  show "13. Done. Worker 1 was replaced; workers 0 and 2 kept their processes and lost no step:"
  sed -n 's/.*\] \(process .* continues .*\)/   \1/p' "$work/out"
}

launcher='' viewer='' agents=() elastic=()
build
work=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT TERM
train
check_result
replace_node
keep_survivors
