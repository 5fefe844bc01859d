#!/usr/bin/env python3
"""Compares in-process restart with torchft's: from the crash of a rank to the next step of all.

    bench/recovery/torchft_run.py PYTHON    # of an environment with torch and torchft

torchft restarts no processes. Each rank is a replica group, and a job of `cpprun --preload`, which
does. bench/README.md explains the figures. Build first: cmake --build build/check --target cpprun
"""

import argparse
import os
import pathlib
import random
import signal
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / 'compare')]

import machine  # noqa: E402
import run  # noqa: E402
from python_job import RESTARTS, Job, Launcher  # noqa: E402

TORCHFT = 'torchft'


class ReplicaGroups(Job):
    """Jobs of one rank each, and the server at which they meet."""

    def __init__(self, launcher, ranks, options):
        super().__init__(launcher, ranks, TORCHFT, options)
        self.server, self.groups = None, []

    def __enter__(self):
        port = machine.free_port()
        server = pathlib.Path(self.environment['PYTHON_EXEC']).parent / 'torchft_lighthouse'
        address = f'127.0.0.1:{port}'
        limits = ['--min_replicas', str(self.ranks)]
        limits += ['--join_timeout_ms', str(int(1000 * self.patience))]
        self.server = self.start([server, '--bind', address, *limits])
        own = ['--standalone', '--worker-store=agent', f'--max-restarts={RESTARTS}']
        for group in range(self.ranks):
            started = self.start(
                [*self.launcher.command, *own, *self.launcher.scripts[TORCHFT]],
                TORCHFT_LIGHTHOUSE=f'http://{address}',
                REPLICA_GROUPS=str(self.ranks),
                REPLICA_GROUP_ID=str(group),
            )
            self.groups.append(started)
        self.process = self.groups[-1]
        return self

    def __exit__(self, *_):
        for group in self.groups:
            group.send_signal(signal.SIGINT)
        machine.wait_until(lambda: all(p.poll() is not None for p in self.groups), 10, 0.05)
        for process in (self.server, *self.groups[:-1]):
            machine.stop(process)
        super().__exit__()  # of the last one, and the folder

    def wait_for_step(self, after, other_than=None):
        """{rank: its stamp} of the first step of all ranks that began so late. `other_than`: a
        process that has died."""

        def found():
            steps = {}
            for each in self.stamps():
                if each.ns > after and each.pid != other_than:
                    steps.setdefault(each.kind, {}).setdefault(each.rank, each)
            return next((step for step in steps.values() if len(step) == self.ranks), None)

        machine.wait_until(found, self.patience, 0.01)
        return found()


def crash_each(job, table, row, crashes):
    """Kills a random rank at a random moment, and waits until all ranks have made a step."""
    now = job.wait_for_step(0)
    for _ in range(crashes if now else 0):
        time.sleep(random.uniform(0.3, 0.8))
        victim = random.choice(list(now.values())).pid
        killed_at = machine.now()
        os.kill(victim, signal.SIGKILL)
        now = job.wait_for_step(killed_at, victim)
        last = now and run.seconds(killed_at, max(stamp.ns for stamp in now.values()))
        table.add(row, TORCHFT, last)
        if not now:
            return


def measure(launchers, table, options):
    ours, theirs = launchers
    row = f'bare loop, n = {options.ranks}: crash to next step of all ranks, s'
    for _ in range(options.rounds):
        run.measure_crashes(ours, table, options, 'bare loop', options.ranks)
        with ReplicaGroups(theirs, options.ranks, options) as job:
            crash_each(job, table, row, options.crashes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('python', type=pathlib.Path, help='of an environment with torchft')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--crashes', type=int, default=5, help='per job')
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--patience', type=float, default=120, help='longest wait, seconds')
    options = parser.parse_args()
    options.device, options.torchrun = 'cpu', ''
    ours = next(each for each in run.find_launchers(options) if each.name == run.ELASTIC)
    scripts = {TORCHFT: (HERE / 'torchft_loop.py',)}
    environment = {**ours.environment, 'PYTHON_EXEC': str(options.python)}
    launchers = (ours, Launcher(TORCHFT, ours.command, environment, scripts))
    table = run.Table()
    measure(launchers, table, options)
    print(table.markdown(launchers))
    for row, samples in table.samples.items():
        for name, values in samples.items():
            known = sorted(value for value in values if value is not None)
            shown = ', '.join(f'{value:.3f}' for value in known)
            print(f'\n{row}, {name}: {len(known)} of {len(values)} crashes; {shown}')
    sys.exit(any(None in values for each in table.samples.values() for values in each.values()))


if __name__ == '__main__':
    main()
