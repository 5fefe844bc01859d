#!/usr/bin/env python3
"""Compares how fast Python jobs start and recover under cpprun, with and without --preload and
cpprun_worker.elastic, and under torchrun.

    bench/recovery/run.py               # all; prints Markdown for bench/README.md
    bench/recovery/run.py --quick       # one run of little: checks that everything works
    bench/recovery/run.py --json FILE   # also writes all samples there

The launchers take turns within a round, so that other load affects all of them; figures are medians
over the rounds. bench/README.md explains the rows. Build first:
cmake --build build/check --target cpprun
"""

import argparse
import collections
import json
import math
import os
import pathlib
import random
import signal
import statistics
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'compare'))

import machine  # noqa: E402
from python_job import ROOT, Job, Launcher, pss_mib  # noqa: E402

OURS, PRELOADED, ELASTIC, THEIRS, UNSHARED = (
    'cpprun',
    'cpprun --preload',
    'cpprun --preload + elastic',
    'torchrun',
    'torchrun, store of its own',
)
OWN = (OURS, PRELOADED, ELASTIC)
SLOW_SECONDS = 20
STARTS = 3  # per round: the speed of a virtual machine changes from one minute to the next

# Whether a goal is reached is a question of medians of the same run.
Goal = collections.namedtuple('Goal', 'text limit')


class Table:
    """Samples in seconds or MiB, by row and launcher."""

    def __init__(self):
        self.samples = collections.defaultdict(lambda: collections.defaultdict(list))
        self.goals = collections.defaultdict(dict)  # by row and launcher

    def add(self, row, launcher, value):
        self.samples[row][launcher].append(value)
        shown = 'none' if value is None else f'{value:.3f}'
        print(f'  {row} | {launcher} | {shown}', file=sys.stderr, flush=True)

    def median(self, row, launcher):
        """None if most samples are missing."""
        samples = self.samples[row].get(launcher, ())
        values = [math.inf if value is None else value for value in samples]
        found = statistics.median(values) if values else math.inf
        return found if math.isfinite(found) else None

    def outcome(self, row):
        return '; '.join(self._outcome(row, name) for name in self.goals.get(row, ()))

    def _outcome(self, row, launcher):
        text, limit = self.goals[row][launcher]
        text = f'{launcher.removeprefix("cpprun ")}: {text}'
        wanted, got = limit(self), self.median(row, launcher)
        if wanted is None or got is None:
            return text
        return f'{text} = {wanted:.2f}: {"reached" if got <= wanted else "MISSED"}'

    def markdown(self, launchers):
        names = [launcher.name for launcher in launchers]
        lines = ['| what | ' + ' | '.join(names) + ' | goal |']
        lines.append('| --- |' + ' ---: |' * len(names) + ' --- |')
        for row in list(self.samples):  # median() adds those that a goal alone names
            values = [self.median(row, name) for name in names]
            cells = ['' if value is None else f'{value:.3g}' for value in values]
            lines.append(f'| {row} | ' + ' | '.join(cells) + f' | {self.outcome(row)} |')
        return '\n'.join(lines)


def of_median(row, launchers, factor, plus=0.0):
    """A limit: the median of another cell of the same run, times a factor, plus a constant. Of
    several launchers the fastest counts.
    """

    def limit(table):
        medians = [table.median(row, launcher) for launcher in launchers]
        found = [median for median in medians if median is not None]
        return factor * min(found) + plus if found else None

    return limit


def seconds(begin, end):
    return (end - begin) / 1e9


def crash(job, table, row, launcher):
    """Kills a random rank at a random moment, and waits until all ranks have made a step."""
    time.sleep(random.uniform(0.1, 0.6))
    before = job.wait_for('step')
    if not before:
        return False
    victim = random.choice(list(before.values())).pid
    killed_at = machine.now()
    os.kill(newest_pid(job, victim), signal.SIGKILL)
    if launcher == ELASTIC:
        return end_of_regrouping(job, table, row, killed_at)
    begun = job.wait_for('begin', killed_at)
    imported = begun and job.wait_for('imported', killed_at)
    stepped = imported and job.wait_for('step', max(s.ns for s in imported.values()))
    if not stepped:
        table.add(f'{row}: crash to next step of all ranks, s', launcher, None)
        return False
    last_begun, last_imported, last_step = (
        max(stamp.ns for stamp in stamps.values()) for stamps in (begun, imported, stepped)
    )
    table.add(f'{row}: crash to next step of all ranks, s', launcher, seconds(killed_at, last_step))
    table.add(f'{row}: … until all scripts begin, s', launcher, seconds(killed_at, last_begun))
    table.add(f'{row}: … imports, s', launcher, seconds(last_begun, last_imported))
    table.add(f"{row}: … the script's own setup, s", launcher, seconds(last_imported, last_step))
    return True


def end_of_regrouping(job, table, row, killed_at):
    """Survivors begin and import nothing: their program reports when a round has made a step."""
    stepped = job.wait_for('first_step', killed_at)
    last = stepped and seconds(killed_at, max(stamp.ns for stamp in stepped.values()))
    table.add(f'{row}: crash to next step of all ranks, s', ELASTIC, last)
    return bool(stepped)


def newest_pid(job, pid):
    """The process that runs now as the rank of `pid`."""
    rank = next(stamp.rank for stamp in job.stamps() if stamp.pid == pid)
    return [stamp for stamp in job.stamps() if stamp.kind == 'begin' and stamp.rank == rank][-1].pid


def measure_crashes(launcher, table, options, program, ranks, slow=None):
    row = f'{program}, n = {ranks}' + (', with a slow import' if slow is not None else '')
    with Job(launcher, ranks, program, options, slow) as job:
        imports_again = slow is not None and launcher.name != PRELOADED
        for _ in range(1 if imports_again else options.crashes):
            if not crash(job, table, row, launcher.name):
                return


def measure_start(launcher, table, options, ranks):
    """Start to first all-reduce, and the memory of workers that train idly."""
    with Job(launcher, ranks, 'bare loop', options) as job:
        reduced = job.wait_for('reduced')
        last = reduced and seconds(job.started_at, max(stamp.ns for stamp in reduced.values()))
        table.add(f'n = {ranks}: start to first all-reduce, s', launcher.name, last)
        imported = job.wait_for('imported') if reduced else None
        if not imported or not job.wait_for('step'):
            return
        memory = sum(pss_mib(stamp.pid) for stamp in imported.values())
        table.add(f'n = {ranks}: PSS of all workers, MiB', launcher.name, memory)


def import_once(launcher, options):
    """Seconds of an import of torch, alone on the machine: what a start cannot avoid. None: it came
    to no end."""
    with Job(launcher, 1, 'bare loop', options) as job:
        imported = job.wait_for('imported')
        begun = imported and job.wait_for('begin')
        return seconds(begun[0].ns, imported[0].ns) if begun else None


def measure_starts(turn, table, options):
    """Imports and starts take turns, since a goal compares them."""
    ours = next(launcher for launcher in turn if launcher.name == OURS)
    import_once(ours, options)  # torch may have to be read from disk
    for _ in range(options.starts):
        for launcher in (each for each in turn if each.scripts is None):
            table.add('n = 1: import of torch, s', ours.name, import_once(ours, options))
            measure_start(launcher, table, options, options.most)


def set_goals(table, options):
    for program in ('bare loop', 'digits'):
        row = f'{program}, n = 4: crash to next step of all ranks, s'
        limit = of_median(row, (THEIRS, UNSHARED), 0.1)
        table.goals[row][PRELOADED] = Goal("1/10 of torchrun's", limit)
    row = 'bare loop, n = 4: crash to next step of all ranks, s'
    limit = of_median(row, (THEIRS, UNSHARED), 0.05)
    table.goals[row][ELASTIC] = Goal("1/20 of torchrun's", limit)
    start = f'n = {options.most}: start to first all-reduce, s'
    one_import = of_median('n = 1: import of torch, s', (OURS,), 1.3, 0.5)
    table.goals[start][PRELOADED] = Goal('1.3 × one import + 0.5 s', one_import)
    slow = 'bare loop, n = 2, with a slow import: crash to next step of all ranks, s'
    fast = 'bare loop, n = 2: crash to next step of all ranks, s'
    table.goals[slow][PRELOADED] = Goal('1.1 × without it', of_median(fast, (PRELOADED,), 1.1))
    memory = f'n = {options.most}: PSS of all workers, MiB'
    limit = of_median(memory, (OURS,), 0.4)
    table.goals[memory][PRELOADED] = Goal("0.4 × spawned ones'", limit)


def measure(launchers, table, options):
    for number in range(options.rounds):
        print(f'round {number + 1} of {options.rounds}', file=sys.stderr, flush=True)
        turn = launchers if number % 2 == 0 else launchers[::-1]
        measure_starts(turn, table, options)
        for program in options.programs:
            for ranks in options.ranks:
                for launcher in turn:
                    if launcher.scripts is None or program in launcher.scripts:
                        measure_crashes(launcher, table, options, program, ranks)
    if options.device == 'cuda':
        return
    for launcher in (each for each in launchers if each.scripts is None):
        slow = launcher
        if launcher.name == PRELOADED:
            command = [word.replace('=torch', '=torch,slow_import') for word in launcher.command]
            slow = launcher._replace(command=command)
        measure_crashes(slow, table, options, 'bare loop', 2, options.slow_seconds)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--crashes', type=int, default=3, help='per job')
    parser.add_argument('--ranks', default='2,4,8', help='numbers of ranks, with commas')
    parser.add_argument('--patience', type=float, default=120, help='longest wait, seconds')
    parser.add_argument('--quick', action='store_true', help='one round of little')
    parser.add_argument('--gpu', action='store_true', help='NCCL; the bare loop alone')
    parser.add_argument('--torchrun', help='default: the one in .venv; "" for none')
    parser.add_argument('--json', type=pathlib.Path, help='also write all samples there')
    options = parser.parse_args()
    options.ranks = [int(number) for number in options.ranks.split(',')]
    options.slow_seconds, options.starts = SLOW_SECONDS, STARTS
    if options.quick:
        options.rounds, options.crashes, options.ranks, options.slow_seconds = 1, 1, [2], 1
        options.starts = 1
    options.most = max(options.ranks)
    options.device = 'cuda' if options.gpu else 'cpu'
    options.programs = ('bare loop',) if options.gpu else ('bare loop', 'digits')
    return options


def find_launchers(options):
    folder = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build' / 'check' / 'bin'))
    python = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv' / 'bin' / 'python'))
    theirs = options.torchrun
    if theirs is None:
        theirs = str(ROOT / '.venv' / 'bin' / 'torchrun')
    own = {'PYTHON_EXEC': python}
    launchers = [
        Launcher(OURS, [str(folder / 'cpprun')], own),
        Launcher(PRELOADED, [str(folder / 'cpprun'), '--preload=torch'], own),
    ]
    sdk = {**own, 'PYTHONPATH': os.pathsep.join([str(HERE), str(ROOT / 'worker_sdk' / 'python')])}
    scripts = {'bare loop': (HERE / 'elastic_loop.py',)}
    launchers.append(launchers[-1]._replace(name=ELASTIC, environment=sdk, scripts=scripts))
    if theirs:
        launchers.append(Launcher(THEIRS, [theirs], own))
        unshared = {**own, 'TORCH_DISABLE_SHARE_RDZV_TCP_STORE': '1'}
        launchers.append(Launcher(UNSHARED, [theirs], unshared))
    return launchers


def main():
    options = parse()
    launchers, table = find_launchers(options), Table()
    measure(launchers, table, options)
    set_goals(table, options)
    print(table.markdown(launchers))
    if options.json:
        options.json.write_text(json.dumps(table.samples, indent=1))
    # torchrun's default restart fails on some machines; cpprun must have all figures.
    own = [table.samples[row].get(name, ()) for row in table.samples for name in OWN]
    missing = [samples for samples in own if None in samples]
    sys.exit(1 if missing else 0)


if __name__ == '__main__':
    main()
