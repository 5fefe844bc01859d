#!/usr/bin/env python3
"""Runs new seeds of the simulator for a while, and goes on where the last run ended.

    tools/run_seeds.py --minutes 30
    tools/run_seeds.py --seeds 100000        # until so many have been run in all

Progress is kept in build/seeds.json. A seed that fails is printed, and added to
tests/sim/seeds.txt, which every gate runs; give it a word of what it was once it is fixed. Exit
code 1 if one failed.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = ROOT / 'build/check/tests/sim/sim_run'
STATE = ROOT / 'build/seeds.json'
KEPT = ROOT / 'tests/sim/seeds.txt'
FIRST = 10_001  # those below belong to the gate
CHUNK = 2_000


def load():
    return json.loads(STATE.read_text()) if STATE.exists() else {'next': FIRST, 'failed': []}


def keep(seed, what):
    known = KEPT.read_text().splitlines()
    if not any(line.split()[:2] == ['small', str(seed)] for line in known):
        KEPT.write_text('\n'.join([*known, f'small {seed}   {what}']) + '\n')


def run_chunk(state):
    first = state['next']
    command = [PROGRAM, '--seeds', f'{first}:{first + CHUNK - 1}']
    run = subprocess.run(command, capture_output=True, text=True)
    failures = re.findall(r'^FAILED sim_run --seed (\d+)\n(?:.*\n){4}  (.*)', run.stdout, re.M)
    if run.returncode != 0:
        print(run.stdout, run.stderr, flush=True)
    if run.returncode not in (0, 1):
        sys.exit(f'sim_run ended with {run.returncode} in seeds {command[2]}')
    for seed, what in failures:
        keep(int(seed), what)
        state['failed'].append(int(seed))
    state['next'] = first + CHUNK
    STATE.write_text(json.dumps(state))
    return run.returncode == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float)
    parser.add_argument('--seeds', type=int)
    wanted = parser.parse_args()
    if not PROGRAM.exists():
        sys.exit(f'{PROGRAM} is not built: cmake --build --preset check --target sim_run')
    state = load()
    start, first, is_good = time.monotonic(), state['next'], True
    while True:
        minutes = (time.monotonic() - start) / 60
        if wanted.minutes is not None and minutes >= wanted.minutes:
            break
        if wanted.seeds is not None and state['next'] - FIRST >= wanted.seeds:
            break
        if wanted.minutes is None and wanted.seeds is None:
            sys.exit('say how long: --minutes N, or --seeds N')
        is_good = run_chunk(state) and is_good
    done = state['next'] - first
    print(
        f'{done} seeds in {minutes:.1f} minutes ({done / max(minutes, 1e-9):.0f} a minute); '
        f'{state["next"] - FIRST} in all, {len(state["failed"])} failed'
    )
    sys.exit(0 if is_good else 1)


if __name__ == '__main__':
    main()
