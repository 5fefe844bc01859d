"""Suites on one node: start, respawn, footprint, orphans. The workers only write stamps."""

import os
import random
import signal
import time

import machine
from job import Job
from rows import FLOOR, Goal


def start(bench):
    for _ in bench.rounds('start'):
        for count in bench.size.workers:
            for subject in bench.subjects(FLOOR):
                one_start(bench, subject, count)

def one_start(bench, subject, count):
    running = bench.rows.row(
        'start', f'n = {count}: exec to all workers', 'ms', Goal(floor=1.5, plus=5)
    )
    gone = bench.rows.row(
        'start', f'n = {count}: last worker, which ends at once, to launcher gone', 'ms', Goal(2)
    )
    cpu = bench.rows.row('start', f'n = {count}: CPU time of all that', 'ms')
    with Job(bench) as job:
        job.launch(bench.single(subject, count, ['exit']))
        end = job.end()
        stamps = job.stamps('S')
        if end.code != 0 or len(stamps) != count:
            job.complain(f'exit {end.code}, {len(stamps)} of {count} workers')
            bench.add(subject, running, None)
            return
        last = max(stamp.ns for stamp in stamps)
        bench.add(subject, running, machine.ms(job.stamps('X')[0].ns, last))
        bench.add(subject, gone, machine.ms(last, end.ns))
        bench.add(subject, cpu, end.cpu_ms)

def respawn(bench):
    for _ in bench.rounds('respawn'):
        for subject in bench.subjects(FLOOR):
            crashes(bench, subject, bench.size.node)

def crashes(bench, subject, count):
    """Kills one worker after another. The floor does the same without a launcher."""
    goal = Goal(floor=1.5, plus=2)
    case = f'n = {count}: a worker killed, to all workers of the next attempt'
    first, later = (
        bench.rows.row('respawn', f'{case}, {which}', 'ms', goal)
        for which in ('first crash', 'later crashes')
    )
    to_first_signal = bench.rows.row(
        'respawn', f'n = {count}: a worker killed, to the first other signalled', 'ms', Goal(1)
    )
    with Job(bench) as job:
        attempts = bench.size.crashes + 1
        job.launch(bench.single(subject, count, ['wait'], attempts=attempts))
        workers = job.workers(count)
        for number in range(bench.size.crashes):
            if not workers:
                bench.add(subject, later if number else first, None)
                return
            time.sleep(random.uniform(0.15, 0.35))  # random phase, because some launchers poll
            killed = machine.now()
            os.kill(next(w.pid for w in workers if w.local == 0), signal.SIGKILL)
            workers = job.workers(count, after=killed)
            if workers:
                bench.add(
                    subject, later if number else first, machine.ms(killed, workers[-1].ns)
                )
            for stamp in job.stamps('T', after=killed)[:1]:
                bench.add(subject, to_first_signal, machine.ms(killed, stamp.ns))

def footprint(bench):
    for _ in bench.rounds('footprint'):
        for subject in bench.subjects():
            own_processes(bench, subject, bench.size.node)

def own_processes(bench, subject, count):
    """The processes of the launcher itself, without the workers."""
    names = {
        'RSS of the launcher': ('MiB', Goal(10)),
        'wake-ups when idle': ('per s', Goal(0)),
        'processes besides the workers': ('', None),
    }
    rows = [
        bench.rows.row('footprint', f'n = {count}: {name}', unit, goal)
        for name, (unit, goal) in names.items()
    ]
    with Job(bench) as job:
        process = job.launch(bench.single(subject, count, ['wait']))
        workers = job.workers(count)
        if not workers:
            bench.add(subject, rows[0], None)
            return
        time.sleep(min(1, bench.size.idle))  # lets the work after the start finish
        pids = set(machine.with_descendants([process.pid])) - {w.pid for w in workers}
        before = machine.wake_ups(pids)
        time.sleep(bench.size.idle)
        woken = (machine.wake_ups(pids) - before) / bench.size.idle
        for row, value in zip(rows, (sum(map(machine.rss_mib, pids)), woken, len(pids))):
            bench.add(subject, row, value)

def orphans(bench):
    for _ in bench.rounds('orphans'):
        for subject in bench.subjects():
            killed_launcher(bench, subject, bench.size.node)

def killed_launcher(bench, subject, count):
    row = bench.rows.row(
        'orphans', f'n = {count}: workers alive 1 s after kill -9 of the launcher', '', Goal(0)
    )
    with Job(bench) as job:
        process = job.launch(bench.single(subject, count, ['wait']))
        workers = job.workers(count)
        if not workers:
            bench.add(subject, row, None)
            return
        time.sleep(0.3)
        process.kill()
        machine.wait_until(lambda: not any(machine.is_alive(w.pid) for w in workers), 1)
        bench.add(subject, row, sum(machine.is_alive(w.pid) for w in workers))
