"""Suite store: cpprunctl serve, torch's TCPStore server, and a server that only answers PING.

torch's server looks up the name of every client that connects. To keep this machine's resolver out
of the results, servers get one that refuses at once, and in one row one that answers late; without
root they use the machine's own.
"""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import threading
import time

import machine
from rows import FLOOR, OURS, THEIRS, Goal

HERE = pathlib.Path(__file__).resolve().parent
REFUSING, SLOW = '127.0.9.54', '127.0.9.53'  # no server listens at the first
SLOWNESS = 0.1  # seconds
BASIC = ('get', 'set', 'add', 'check', 'wait', 'compare_set', 'multi_get', 'multi_set')
PIPELINED = ('get', 'set', 'multi_get')
# (connections, requests in flight on each) -> operations, and the goal of get in multiples of the
# floor
SHAPES = {(16, 1): (BASIC, 1.3), (16, 16): (PIPELINED, 2.0), (1024, 1): (PIPELINED, 1.3)}
# JSON field of compare_load -> text of the row
FIELDS = {'server_cpu': 'server CPU per operation', 'p50': 'p50', 'p99': 'p99'}


class Server:
    """A store under test, until stop()."""

    def __init__(self, bench, subject, resolver):
        self.port = machine.free_port()
        if subject == FLOOR:
            command = [str(bench.pong), str(self.port)]
        elif subject == THEIRS and bench.torch_python:
            command = [bench.torch_python, str(HERE / 'torch_store.py'), str(self.port)]
        else:  # this build, or an older one
            command = [str(bench.ctl(subject)), 'serve', '--listen', f'127.0.0.1:{self.port}']
        self.process = subprocess.Popen(
            [*seeing(resolver, bench.folder), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if not machine.wait_until(lambda: machine.answers(self.port), bench.size.patience, 0.05):
            self.stop()
            raise RuntimeError(f'the store of {subject} does not come up: {command}')

    def stop(self):
        machine.stop(self.process)


@contextlib.contextmanager
def servers(bench, resolver, names):
    running = {}
    try:
        for name in names:
            running[name] = Server(bench, name, resolver)
        yield running
    finally:
        for server in running.values():
            server.stop()


def can_choose_resolver():
    if os.geteuid() != 0 or shutil.which('unshare') is None:
        return False
    tried = subprocess.run(['unshare', '-m', 'true'], check=False, capture_output=True)
    return tried.returncode == 0


def seeing(resolver, folder):
    """A command prefix that makes `resolver` the name server; uses a mount namespace."""
    if not can_choose_resolver():
        return []
    conf = folder / f'resolv-{resolver}.conf'
    conf.write_text(f'nameserver {resolver}\n')
    code = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
    return ['unshare', '-m', 'sh', '-c', code, str(conf)]


@contextlib.contextmanager
def slow_resolver():
    """A name server that answers every query late, with an error."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as port:
        port.bind((SLOW, 53))
        port.settimeout(0.2)
        is_over = threading.Event()

        def serve():
            while not is_over.is_set():
                with contextlib.suppress(TimeoutError):
                    query, peer = port.recvfrom(2048)
                    time.sleep(SLOWNESS)
                    refusal = query[:2] + b'\x81\x83' + query[4:6] + bytes(6) + query[12:]
                    port.sendto(refusal, peer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def loaded(bench, server, operation, connections, depth):
    """The results of compare_load; None if it failed."""
    command = [bench.load, server.port, server.process.pid, operation, connections, depth]
    command.append(bench.size.load)
    try:
        done = subprocess.run(
            list(map(str, command)),
            check=False,
            capture_output=True,
            text=True,
            timeout=bench.size.patience,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        print(f'  {operation}: {done.stderr.strip()}', file=sys.stderr)
        return None
    return json.loads(done.stdout)


def names(bench):
    return [name for name in (OURS, THEIRS) if name in bench.launchers]


def store(bench):
    shapes = SHAPES if bench.size.all_shapes else dict([next(iter(SHAPES.items()))])
    with servers(bench, REFUSING, [FLOOR, *names(bench)]) as running:
        for _ in bench.rounds('store'):
            for shape, (operations, times) in shapes.items():
                floors = floor(bench, running, shape)
                for operation in operations:
                    one_operation(bench, running, operation, shape, times, floors)
            many = 1024 if bench.size.all_shapes else 64
            connect(bench, running, f'{many:,} connections set up', many, [FLOOR])
            wake(bench, running)
    if can_choose_resolver() and bench.size.all_shapes:
        with slow_resolver(), servers(bench, SLOW, names(bench)) as running:
            case = f'64 connections set up, a resolver that takes {SLOWNESS} s'
            connect(bench, running, case, 64)


def floor(bench, running, shape):
    """PING at the server that answers nothing else: the floor of every operation of that shape."""
    return loaded(bench, running[FLOOR], 'ping', *shape)


def goal_of(field, operation, times):
    if operation != 'get' or field == 'p50':
        return None
    return Goal(floor=times) if field == 'server_cpu' else Goal(theirs=0.5)


def one_operation(bench, running, operation, shape, times, floors):
    for subject in turned(bench, names(bench)):
        measured = loaded(bench, running[subject], operation, *shape)
        for field, text in FIELDS.items():
            row = bench.rows.row(
                'store',
                f'{operation}, {shape[0]} × {shape[1]}: {text}',
                'µs',
                goal_of(field, operation, times),
            )
            bench.add(subject, row, measured and measured[field])
            if subject == OURS and floors:
                row.add(FLOOR, floors[field])


def turned(bench, all_names):
    return all_names if next(bench.turns) % 2 == 0 else all_names[::-1]


def connect(bench, running, case, count, more=()):
    row = bench.rows.row('store', case, 'ms', Goal(30))
    for subject in turned(bench, [*more, *names(bench)]):
        measured = loaded(bench, running[subject], 'connect', count, 1)
        bench.add(subject, row, measured and measured['p50'] / 1000)


def wake(bench, running):
    row = bench.rows.row('store', 'one SET wakes 256 waiting: until the last knows, p50', 'µs')
    for subject in turned(bench, names(bench)):
        measured = loaded(bench, running[subject], 'wake', 256, 1)
        bench.add(subject, row, measured and measured['p50'])
