#!/usr/bin/env bash
# The main job from a clean clone: builds cpprun, trains with two workers, kills one on the way, and
# shows that training goes on from its snapshot. Exits 0 only if all of that was seen.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

epochs=20          # training epochs of the example
kill_after=6       # the worker dies when this many are done
limit=180          # seconds for the training; it takes about 20
wanted_accuracy=95 # per cent

say() { printf '\n\033[1m%s\033[0m\n' "$*" | { if [ -t 1 ]; then cat; else tr -d '\033' |
  sed 's/\[1m//; s/\[0m//'; fi; }; }

build() {
  say "1. Installing what is missing: a compiler, Boost, and a Python with torch in .venv"
  tools/deps.sh --python
  say "2. Building cpprun (the launcher itself needs neither Python nor torch)"
  cmake --preset release >/dev/null
  cmake --build --preset release -j "$(nproc)" | tail -n 1
}

# wait_for TEXT: until it stands in the output; fails if the launcher ends or the time is up.
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
  local status=$?
  if [ -n "$launcher" ] && kill -TERM "$launcher" 2>/dev/null; then wait "$launcher" || true; fi
  if [ -n "$viewer" ] && kill "$viewer" 2>/dev/null; then wait "$viewer" || true; fi
  rm -rf "$work"
  exit "$status"
}

train() {
  local command=(cpprun --standalone --nproc_per_node=2 --max_restarts=3
    examples/python/digits_ddp.py --epochs "$epochs" --snapshot "$work/digits.pt" --sleep 0.2)
  say "3. Training a digit reader with two workers on this machine:"
  echo "   ${command[*]}"
  PATH=$root/build/release/bin:$root/.venv/bin:$PATH "${command[@]}" >"$work/out" 2>&1 &
  launcher=$!
  tail -n +1 -s 0.1 --pid="$launcher" -f "$work/out" | sed -u 's/^/   | /' &
  viewer=$!
  deadline=$((SECONDS + limit))

  wait_for "training epoch $kill_after of $epochs done" || give_up "training did not get going"
  local victim
  victim=$(sed -n 's/.*\[rank 1\] started as process \([0-9]*\),.*/\1/p' "$work/out" | tail -n 1)
  say "4. Killing worker 1 (process $victim) with kill -9, as a machine out of memory would"
  kill -KILL "$victim"
  local killed_at=$SECONDS
  wait_for 'resuming from snapshot' || give_up "training did not resume after the kill"
  say "5. cpprun saw it, stopped the other worker and started both again, from the snapshot" \
    "($((SECONDS - killed_at)) s later, most of it Python importing torch)"
  wait_for 'test accuracy' || give_up "the restarted training did not finish"
}

judge() {
  local status=0 accuracy
  wait "$launcher" || status=$?
  launcher=
  wait "$viewer" || true
  viewer=
  accuracy=$(sed -n 's/.*test accuracy \([0-9.]*\) %.*/\1/p' "$work/out" | tail -n 1)
  [ "$status" = 0 ] || give_up "cpprun ended with exit code $status, not 0"
  [ "$(grep -c 'resuming from snapshot' "$work/out")" = 1 ] || give_up "it did not resume once"
  awk -v a="$accuracy" -v w="$wanted_accuracy" 'BEGIN { exit !(a >= w) }' ||
    give_up "test accuracy is $accuracy %, below $wanted_accuracy %"
  say "6. Done. One worker was killed, nothing was lost but the training epoch it was in:"
  sed -n 's/.*\] \(resuming from .*\)/   \1/p' "$work/out"
  echo "   test accuracy $accuracy % (at least $wanted_accuracy % was asked for), exit code 0"
}

launcher='' viewer=''
build
work=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT TERM
train
judge
