#!/usr/bin/env python3
"""Measures how much of a training is left under failures, beside a run without a failure.

The launchers are torchrun, cpprun, cpprun with everything, and that with a spare node. Those with
everything are compared with everything without a failure.

    bench/goodput/run.py                       # 10 minutes each; prints Markdown
    bench/goodput/run.py --minutes 2 --seed 7
    bench/goodput/run.py --rows 'cpprun,cpprun with everything'
    bench/goodput/run.py --quick               # seconds: checks that everything works

bench/README.md explains the rows. Build first: cmake --build build/check --target cpprun
"""

import argparse
import collections
import json
import os
import pathlib
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent / 'compare'))

import machine  # noqa: E402
from cluster import Cluster  # noqa: E402
from kill_plan import SHARES, kill_plan  # noqa: E402

NODES, WORKERS = 2, 2
RESTART_SECONDS = 1.0  # until the scheduler starts the launcher of a node again
MANY = 100_000  # restarts: more than any run needs
UNDISTURBED, THEIRS, OURS = 'no failure', 'torchrun', 'cpprun'
ALL, SPARED = 'cpprun with everything', 'cpprun with everything and a spare node'
ALL_UNDISTURBED = 'no failure, with everything'
BASES = {ALL_UNDISTURBED: ALL_UNDISTURBED, ALL: ALL_UNDISTURBED, SPARED: ALL_UNDISTURBED}
GOAL = 0.97

Launcher = collections.namedtuple(
    'Launcher', 'name program flags script has_kills spares', defaults=(0,)
)
Outcome = collections.namedtuple('Outcome', 'steps kills')


def launchers_of(options):
    ours = str(pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build/check/bin')) / 'cpprun')
    theirs = str(ROOT / '.venv/bin/torchrun') if options.torchrun is None else options.torchrun
    disk = ['--disk-only', f'--every={options.every}']
    whole = ['--elastic', '--every=auto']
    found = [Launcher(UNDISTURBED, ours, [], disk, False)]
    if theirs:
        found.append(Launcher(THEIRS, theirs, [], disk, True))
    found.append(Launcher(OURS, ours, [], disk, True))
    flags = ['--preload=torch']
    found.append(Launcher(ALL_UNDISTURBED, ours, flags, whole, False))
    found.append(Launcher(ALL, ours, flags, whole, True))
    found.append(Launcher(SPARED, ours, [*flags, '--spares=1'], whole, True, spares=1))
    chosen = options.rows.split(',') if options.rows else [each.name for each in found]
    bases = {BASES.get(name, UNDISTURBED) for name in chosen}
    return [each for each in found if each.name in {*bases, *chosen}]


def environment():
    python = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv/bin/python'))
    return {**machine.outer_environment(), 'PYTHON_EXEC': python, 'OMP_NUM_THREADS': '1'}


def command_maker(launcher):
    """A function of the folder of a run: the command of a node's launcher."""
    port = machine.free_port()

    def make(folder):
        return [
            launcher.program,
            f'--nnodes={NODES + launcher.spares}',
            f'--nproc-per-node={WORKERS}',
            f'--max-restarts={MANY}',
            '--rdzv-backend=c10d',
            f'--rdzv-endpoint=127.0.0.1:{port}',
            f'--rdzv-id={folder.name}',
            '--local-addr=127.0.0.1',
            *launcher.flags,
            str(HERE / 'train.py'),
            f'--progress={folder / "progress"}',
            f'--folder={folder / "snapshots"}',
            *launcher.script,
        ]

    return make


def measure(launcher, options):
    """The Outcome; None: not a single step was made."""
    plan = kill_plan(options.seed, options.seconds, options.mtbf, NODES, WORKERS)
    plan = plan if launcher.has_kills else []
    make = command_maker(launcher)
    count = NODES + launcher.spares
    with Cluster(count, RESTART_SECONDS, make, environment()) as cluster:
        give_up = time.monotonic() + options.patience
        cluster.run_until(lambda: cluster.steps() or time.monotonic() > give_up)
        if not cluster.steps():
            cluster.last_output()
            return None
        began, done = cluster.steps()[0][1], collections.Counter()
        for planned in plan:
            due = began + int(planned.at * 1e9)
            cluster.run_until(lambda due=due: machine.now() >= due)
            done[planned.kind if cluster.inject(planned) else 'missed'] += 1
        end = began + int(options.seconds * 1e9)
        cluster.run_until(lambda: machine.now() >= end)
        made = max(step for step, ns in cluster.steps() if ns <= end)
    print(f'  {launcher.name}: {made} steps, {dict(done)}', file=sys.stderr, flush=True)
    return Outcome(made, done)


def markdown(rows, options):
    lines = [
        '| | useful steps | to the same without failure | kills: workers, agents, nodes | missed |',
        '| --- | ---: | ---: | --- | ---: |',
    ]
    made = {name: sum(outcome.steps for outcome in outcomes) for name, outcomes in rows.items()}
    for name, outcomes in rows.items():
        steps, whole = made[name], made[BASES.get(name, UNDISTURBED)]
        kills = sum((outcome.kills for outcome in outcomes), collections.Counter())
        goal = f' (goal {GOAL})' if name in (ALL, SPARED) else ''
        killed = ', '.join(str(kills[kind]) for kind in SHARES)
        share = f'{steps / whole:.3f}{goal}'
        lines.append(f'| {name} | {steps} | {share} | {killed} | {kills["missed"]} |')
    lines.append('')
    lines.append(
        f'{NODES} nodes of {WORKERS} workers; {options.rounds} × {options.seconds:.0f} s each; a'
        f' kill each {options.mtbf:g} s on average, seeds from {options.first_seed};'
        f' a launcher starts again {RESTART_SECONDS:g} s after its end;'
        f' load before and after: {options.load[0]:.1f}, {os.getloadavg()[0]:.1f}'
    )
    return '\n'.join(lines)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--minutes', type=float, default=10, help='of each run; default: 10')
    parser.add_argument('--mtbf', type=float, default=30, help='seconds between kills, on average')
    parser.add_argument('--seed', type=int, default=1, help='of the first round; default: 1')
    parser.add_argument('--rounds', type=int, default=1, help='all launchers, each a seed further')
    parser.add_argument('--rows', default='', help='their names, with commas; default: all')
    parser.add_argument('--every', type=int, default=50, help='steps between saves to disk')
    parser.add_argument('--patience', type=float, default=120, help='until the first step, seconds')
    parser.add_argument('--quick', action='store_true', help='10 s each, a kill each 3 s')
    parser.add_argument('--torchrun', help='default: the one in .venv; "" for none')
    parser.add_argument('--json', type=pathlib.Path, help='also write the figures there')
    options = parser.parse_args()
    options.seconds = options.minutes * 60
    if options.quick:
        options.seconds, options.mtbf = 10, 3
    options.first_seed, options.load = options.seed, os.getloadavg()
    return options


def main():
    options, rows = parse(), {}
    launchers = launchers_of(options)
    for number in range(options.rounds):
        options.seed = options.first_seed + number
        for launcher in launchers if number % 2 == 0 else launchers[::-1]:
            rows.setdefault(launcher.name, []).append(measure(launcher, options))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1))
    if any(outcome is None for outcomes in rows.values() for outcome in outcomes):
        sys.exit(1)
    print(markdown({launcher.name: rows[launcher.name] for launcher in launchers}, options))


if __name__ == '__main__':
    main()
