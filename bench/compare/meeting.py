"""Suite elastic: two nodes on this machine; one joins or leaves."""

import contextlib
import os
import shutil
import subprocess
import time

import machine
from bench import local_endpoint
from job import Job
from rows import THEIRS, Goal

WORKERS = 2  # per node
LEASE = 5  # cpprun's default: seconds of silence until a node counts as lost


def elastic(bench):
    cases = [grow, lose_peer]
    if bench.size.all_losses:
        cases += [lose_host, *([pull_cable] if can_make_hosts() else [])]
    for _ in bench.rounds('elastic', is_slow=True):
        for case in cases:
            for subject in bench.subjects():
                case(bench, subject)


def row_of(bench, case, goal):
    return bench.rows.row('elastic', case, 's', goal)


def seconds(begin, workers):
    return (workers[-1].ns - begin) / 1e9 if workers else None


def grow(bench, subject):
    """A single node of 1:2 starts; then a second one joins."""
    lone = row_of(bench, 'lone node of 1:2: exec to its workers', Goal(1.1))
    grown = row_of(bench, 'second node joins: its exec to the workers of both', Goal(0.1))
    command = bench.meeting(subject, '1:2', WORKERS, local_endpoint(), ['wait'])
    with Job(bench) as job:
        begin = machine.now()
        job.launch(command, 'A')
        workers = job.workers(WORKERS, world=WORKERS)
        bench.add(subject, lone, seconds(begin, workers))
        if not workers:
            return
        time.sleep(0.5)
        begin = machine.now()
        job.launch(command, 'B')
        both = job.workers(2 * WORKERS, world=2 * WORKERS, after=begin)
        bench.add(subject, grown, seconds(begin, both))


def lose_peer(bench, subject):
    row = row_of(bench, 'agent killed: to the new workers of the other node', Goal(0.5))
    lose(bench, subject, row, victim='B', survivor='A')


def lose_host(bench, subject):
    row = row_of(bench, "coordinator's agent killed: to the new workers of the other", Goal(1))
    lose(bench, subject, row, victim='A', survivor='B')


def lose(bench, subject, row, victim, survivor):
    endpoint = local_endpoint()
    command = bench.meeting(subject, '1:2', WORKERS, endpoint, ['wait'])
    with Job(bench) as job:
        job.launch(command, 'A')
        port = int(endpoint.rpartition(':')[2])
        machine.wait_until(lambda: machine.answers(port), bench.size.patience)
        job.launch(command, 'B')
        if not job.workers(2 * WORKERS, world=2 * WORKERS):
            bench.add(subject, row, None)
            return
        time.sleep(0.5)
        killed = machine.now()
        job.launched[victim].kill()
        bench.add(subject, row, seconds(killed, reformed(bench, job, survivor, killed)))


def reformed(bench, job, survivor, after):
    """The stamps of the survivor's new workers; empty if it ends or the time is up."""

    def look():
        fresh = [s for s in job.stamps('S', survivor, after) if s.world == WORKERS]
        return len(fresh) >= WORKERS or job.launched[survivor].poll() is not None

    machine.wait_until(look, bench.size.patience)
    fresh = [s for s in job.stamps('S', survivor, after) if s.world == WORKERS]
    return fresh if len(fresh) >= WORKERS else []


def pull_cable(bench, subject):
    """Two network namespaces; the second one's link goes down without notice to its peers."""
    row = row_of(bench, 'cable pulled: to the new workers of the other node', Goal(LEASE + 1))
    alive = bench.rows.row('elastic', 'workers still running on the node cut off, then', '')
    with hosts(2) as hub, Job(bench) as job:
        for number, node in enumerate('AB', 1):
            flags = [f'--local-addr=10.77.0.{number}', f'--rdzv-conf=is_host={2 - number}']
            command = bench.meeting(
                subject, '1:2', WORKERS, '10.77.0.1:29400', ['wait'], flags
            )
            job.launch(command, node, wrap=('ip', 'netns', 'exec', f'{hub}n{number}'))
            time.sleep(0 if number == 2 else 1 if subject != THEIRS else 4)
        workers = job.workers(2 * WORKERS, world=2 * WORKERS)
        if not workers:
            bench.add(subject, row, None)
            return
        time.sleep(0.5)
        cut = machine.now()
        ip('-n', hub, 'link', 'set', 'p2', 'down')
        bench.add(subject, row, seconds(cut, reformed(bench, job, 'A', cut)))
        left = [s for s in workers if s.node == 'B' and machine.is_alive(s.pid)]
        bench.add(subject, alive, len(left))


def ip(*args):
    subprocess.run(['ip', *args], check=True, capture_output=True, timeout=20)


def can_make_hosts():
    return os.geteuid() == 0 and shutil.which('ip') is not None


@contextlib.contextmanager
def hosts(count):
    """Creates namespaces <hub>n1, <hub>n2, ... on a bridge in namespace <hub>, 10.77.0.1 and up."""
    hub = f'compare{os.getpid()}'
    names = [hub, *(f'{hub}n{number}' for number in range(1, count + 1))]
    try:
        for name in names:
            ip('netns', 'add', name)
        ip('-n', hub, 'link', 'add', 'bridge', 'type', 'bridge')
        ip('-n', hub, 'link', 'set', 'bridge', 'up')
        for number, name in enumerate(names[1:], 1):
            peer = ['peer', 'name', 'eth0', 'netns', name]
            ip('-n', hub, 'link', 'add', f'p{number}', 'type', 'veth', *peer)
            ip('-n', hub, 'link', 'set', f'p{number}', 'master', 'bridge', 'up')
            ip('-n', name, 'addr', 'add', f'10.77.0.{number}/24', 'dev', 'eth0')
            ip('-n', name, 'link', 'set', 'lo', 'up')
            ip('-n', name, 'link', 'set', 'eth0', 'up')
        yield hub
    finally:
        for name in names:
            subprocess.run(['ip', 'netns', 'del', name], check=False, capture_output=True)
