#!/usr/bin/env python3
"""Runs new seeds of the simulator, starting where the last run ended.

    tools/run_seeds.py --minutes 30
    tools/run_seeds.py --seeds 100000        # until this many have run on this tree
    tools/run_seeds.py --etcd --minutes 30   # simulates jobs with etcd

Builds the simulator first, in preset check, which must be configured. Keeps its progress in
build/seeds.json (with --etcd: build/seeds-etcd.json): the next seed and, per tree, the number of
seeds, their time and the failures. A tree is identified by a digest of the sources of the simulator
and the cores. Prints each failing seed and adds it to tests/sim/seeds.txt, which every test run
includes; describe the bug there once it is fixed. Exit code 1 if a seed failed on this tree, in
this run or before.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import time

from tree_digest import commit, digest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / 'build/check'
STATES = ROOT / 'build'
KEPT = ROOT / 'tests/sim/seeds.txt'
FIRST = 10_001  # tools/test.sh runs those below
CHUNK = 500
CHUNK_SECONDS = 900  # time limit of a chunk


def file_of(kind):
    return STATES / ('seeds.json' if kind == 'small' else f'seeds-{kind}.json')


def load(kind, tree):
    """Returns the whole state, and its part for this tree."""
    path = file_of(kind)
    state = json.loads(path.read_text()) if path.exists() else {}
    state['kind'] = kind
    state.setdefault('next', FIRST)
    state.setdefault('trees', {})
    fresh = {'commit': commit(), 'seeds': 0, 'seconds': 0.0, 'failed': []}
    return state, state['trees'].setdefault(tree, fresh)


def save(state):
    path = file_of(state['kind'])
    fresh = path.with_suffix('.new')
    fresh.write_text(json.dumps(state, indent=1))
    fresh.replace(path)


def keep(kind, seed, what):
    known = KEPT.read_text().splitlines()
    if not any(line.split()[:2] == [kind, str(seed)] for line in known):
        KEPT.write_text('\n'.join([*known, f'{kind} {seed}   {what}']) + '\n')


def build(tree):
    """Builds sim_run and returns a copy, which later builds do not change."""
    command = ['cmake', '--build', BUILD, '--target', 'sim_run', '-j', '2']
    built = subprocess.run(command, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit('the simulator does not build:\n' + (built.stdout + built.stderr)[-2000:])
    program = ROOT / f'build/seeds/sim_run-{tree}'
    program.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(BUILD / 'tests/sim/sim_run', program)
    return program


def run_chunk(command, first):
    """Runs a chunk; returns (seed, first broken rule) of each failure."""
    seeds = f'{first}:{first + CHUNK - 1}'
    try:
        run = subprocess.run(
            [*command, '--seeds', seeds], capture_output=True, text=True, timeout=CHUNK_SECONDS
        )
    except subprocess.TimeoutExpired:
        sys.exit(f'seeds {seeds} take more than {CHUNK_SECONDS} s')
    if run.returncode != 0:
        print(run.stdout, run.stderr, flush=True)
    if run.returncode not in (0, 1):
        sys.exit(f'sim_run ended with {run.returncode} in seeds {seeds}')
    failures = []
    for failure in run.stdout.split('FAILED sim_run')[1:]:
        what = re.search(r'^  (.*)', failure, re.MULTILINE)
        seed = re.match(r'(?: --etcd)? --seed (\d+)', failure)
        failures.append((int(seed[1]), what[1] if what else ''))
    return failures


def chunks(state, here, wanted, end):
    """Yields the first seed of each chunk still to run."""
    first, planned = state['next'], here['seeds']
    while time.monotonic() < end and (wanted is None or planned < wanted):
        yield first
        first, planned = first + CHUNK, planned + CHUNK


def take(state, here, failures, seconds):
    for seed, what in failures:
        keep(state['kind'], seed, what)
        here['failed'].append(seed)
    here['seeds'] += CHUNK
    here['seconds'] += seconds
    state['next'] += CHUNK
    save(state)


def run(command, state, here, wanted, jobs, end):
    """Records the chunks in order, so that an interrupted run loses at most `jobs` of them."""
    before = time.monotonic()
    running = []
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        for first in chunks(state, here, wanted, end):
            running.append(pool.submit(run_chunk, command, first))
            if len(running) < jobs:
                continue
            failures, now = running.pop(0).result(), time.monotonic()
            take(state, here, failures, now - before)
            before = now
        for rest in running:
            failures, now = rest.result(), time.monotonic()
            take(state, here, failures, now - before)
            before = now


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=float('inf'))
    parser.add_argument('--seeds', type=int)
    parser.add_argument('--jobs', type=int, default=2)
    parser.add_argument('--etcd', action='store_true')
    wanted = parser.parse_args()
    if wanted.minutes == float('inf') and wanted.seeds is None:
        sys.exit('give a limit: --minutes N or --seeds N')
    tree = digest()
    command = [build(tree), *(['--etcd'] if wanted.etcd else [])]
    state, here = load('etcd' if wanted.etcd else 'small', tree)
    had, begin = here['seeds'], time.monotonic()
    run(command, state, here, wanted.seeds, wanted.jobs, begin + wanted.minutes * 60)
    minutes = max((time.monotonic() - begin) / 60, 1e-9)
    print(
        f'{here["seeds"] - had} seeds in {minutes:.1f} minutes '
        f'({(here["seeds"] - had) / minutes:.0f} a minute); on this tree ({tree}, commit '
        f'{here["commit"]}) {here["seeds"]} in all, {len(here["failed"])} failed'
    )
    sys.exit(1 if here['failed'] else 0)


if __name__ == '__main__':
    main()
