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
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / 'compare'))

import machine  # noqa: E402
import run  # noqa: E402
from python_job import RESTARTS, Job, Launcher  # noqa: E402

TORCHFT = 'torchft'


class ReplicaGroups(Job):
    """Jobs of one rank each, and the server at which they meet."""

    def __init__(self, launcher, ranks, options):
        super().__init__(launcher, ranks, TORCHFT, options)
        self.processes = []

    def __enter__(self):
        port = machine.free_port()
        server = pathlib.Path(self.environment['PYTHON_EXEC']).parent / 'torchft_lighthouse'
        address = f'127.0.0.1:{port}'
        join = ['--join_timeout_ms', str(int(1000 * self.patience))]
        self.start([server, '--min_replicas', str(self.ranks), '--bind', address, *join], {})
        own = ['--standalone', '--worker-store=agent', f'--max-restarts={RESTARTS}']
        for group in range(self.ranks):
            more = {
                'TORCHFT_LIGHTHOUSE': f'http://{address}',
                'REPLICA_GROUPS': str(self.ranks),
                'REPLICA_GROUP_ID': str(group),
            }
            self.start([*self.launcher.command, *own, str(HERE / 'torchft_loop.py')], more)
        return self

    def start(self, command, environment):
        with open(self.folder / 'output', 'ab') as output:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**self.environment, **environment},
                cwd=self.folder,
                start_new_session=True,
            )
        self.processes.append(self.process)

    def __exit__(self, *_):
        for process in self.processes[1:]:
            process.send_signal(signal.SIGINT)
        machine.wait_until(lambda: all(p.poll() is not None for p in self.processes[1:]), 10, 0.05)
        for process in self.processes[:-1]:
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


def crash(job, table, row):
    """Kills a random rank at a random moment, and waits until all ranks have made a step."""
    time.sleep(random.uniform(0.1, 0.6))
    before = job.wait_for_step(machine.now())
    if not before:
        return table.add(row, TORCHFT, None)
    victim = random.choice(list(before.values())).pid
    killed_at = machine.now()
    os.kill(victim, signal.SIGKILL)
    stepped = job.wait_for_step(killed_at, victim)
    last = stepped and run.seconds(killed_at, max(stamp.ns for stamp in stepped.values()))
    return table.add(row, TORCHFT, last)


def measure(launchers, table, options):
    ours, theirs = launchers
    row = f'bare loop, n = {options.ranks}: crash to next step of all ranks, s'
    for _ in range(options.rounds):
        run.measure_crashes(ours, table, options, 'bare loop', options.ranks)
        with ReplicaGroups(theirs, options.ranks, options) as job:
            if job.wait_for_step(0):
                for _ in range(options.crashes):
                    crash(job, table, row)
            else:
                table.add(row, TORCHFT, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('python', type=pathlib.Path, help='of an environment with torchft')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--crashes', type=int, default=5, help='per job')
    parser.add_argument('--ranks', type=int, default=4)
    parser.add_argument('--patience', type=float, default=60, help='longest wait, seconds')
    options = parser.parse_args()
    options.device, options.torchrun = 'cpu', ''
    ours = next(each for each in run.find_launchers(options) if each.name == run.ELASTIC)
    scripts = {TORCHFT: (HERE / 'torchft_loop.py',)}
    environment = {**ours.environment, 'PYTHON_EXEC': str(options.python)}
    theirs = Launcher(TORCHFT, ours.command, environment, scripts)
    table = run.Table()
    measure((ours, theirs), table, options)
    print(table.markdown((ours, theirs)))
    for row, samples in table.samples.items():
        for name, values in samples.items():
            known = sorted(value for value in values if value is not None)
            shown = ', '.join(f'{value:.3f}' for value in known)
            print(f'\n{row}, {name}: {len(known)} of {len(values)} crashes; {shown}')
    sys.exit(any(None in values for each in table.samples.values() for values in each.values()))


if __name__ == '__main__':
    main()
