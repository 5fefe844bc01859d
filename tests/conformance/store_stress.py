"""64 real torch clients at one store, killed and started again at random, and the invariants of the
store.

    store_stress.py PORT SEED SECONDS        prints a report as JSON

Each client is its own process, forked from this one, which has imported torch.
store_stress_client.py holds their work and its invariants.
"""

import json
import os
import random
import signal
import sys
import time
import urllib.request

import torch.distributed as dist
from store_stress_client import (
    CLIENTS,
    FIELDS,
    IN_LOCK,
    IN_WAIT,
    LOCKS,
    NOTHING,
    Client,
    Shared,
    payload,
)


class StressClients:
    """The clients' processes, and their killer."""

    def __init__(self, port, seed):
        self.port, self.seed, self.shared = port, seed, Shared()
        self.chance = random.Random(seed)
        self.running = {}  # number -> process id
        self.to_start = {}  # number -> when
        self.processes = [0] * CLIENTS
        self.kills = {NOTHING: 0, IN_WAIT: 0, IN_LOCK: 0}
        self.wrong = []

    def start(self, number):
        self.processes[number] += 1
        pid = os.fork()
        if pid == 0:
            self.live(number)
        self.running[number] = pid

    def live(self, number):
        """The child; never returns."""
        code = 1
        try:
            process = self.processes[number]
            chance = random.Random(f'{self.seed} {number} {process}')
            Client(self.port, self.shared, number, process, chance).run()
            code = 0
        except BaseException as error:
            print(f'client {number}: {error}', file=sys.stderr, flush=True)
        finally:
            os._exit(code)

    def kill_one(self):
        """A client that waits, that holds a lock, or that does neither, if there is one."""
        doing, candidates = self.chance.choice((NOTHING, IN_WAIT, IN_LOCK)), sorted(self.running)
        wanted = [n for n in candidates if self.shared.of(n).doing == doing]
        number = self.chance.choice(wanted or candidates)
        pid = self.running.pop(number)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        self.kills[self.shared.of(number).doing] += 1
        self.to_start[number] = time.monotonic() + self.chance.uniform(0, 0.2)

    def start_who_is_due(self, is_last=False):
        for number, due in list(self.to_start.items()):
            if is_last or due <= time.monotonic():
                del self.to_start[number]
                self.start(number)

    def look_for_ended(self):
        for number, pid in list(self.running.items()):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                del self.running[number]
                if status != 0 or not self.shared.is_over:
                    self.wrong.append(f'client {number} ended with status {status}')

    def run(self, seconds):
        for number in range(CLIENTS):
            self.start(number)
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.wrong:
            time.sleep(self.chance.uniform(0, 0.06))
            self.kill_one()
            self.start_who_is_due()
            self.look_for_ended()
        self.start_who_is_due(is_last=True)

    def end(self, seconds=45):
        self.shared.end()
        end = time.monotonic() + seconds
        while self.running and time.monotonic() < end:
            self.look_for_ended()
            time.sleep(0.01)
        if self.running:
            self.wrong.append(f'clients {sorted(self.running)} did not come to their end')
        for pid in self.running.values():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def server_facts(port):
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/status', timeout=10) as answer:
        status = json.load(answer)
    return status['connections'], status['store']['waits']


def leaks(port, least, seconds=10):
    """Resources that the server still holds for dead clients: (connections, waits)."""
    end = time.monotonic() + seconds
    while (facts := server_facts(port)) != (least, 0) and time.monotonic() < end:
        time.sleep(0.02)
    return [facts[0] - least, facts[1]]


def judge(store, shared, wrong):
    """The store's content after all clients have ended. Empties the store."""
    total = {name: 0 for name in FIELDS}
    for number in range(CLIENTS):
        known = shared.of(number)
        for name in FIELDS:
            total[name] += getattr(known, name)
        value = store.add(f'count/{number}', 0)
        if not known.answered <= value <= known.begun:
            wrong.append(f'count/{number} is {value}: {known.answered} adds were answered')
        gates = shared.of((number - 1) % CLIENTS)
        for gate in range(known.passed, gates.opened):
            key = f'gate/{number}/{gate}'
            if not store.check([key]) or store.get(key) != payload(number, gate):
                wrong.append(f'{key} was set, and is not there')
        for gate in range(gates.opening):
            store.delete_key(f'gate/{number}/{gate}')
        store.set(f'big/{number}', '')
    drawn = [ticket for number in range(CLIENTS) for ticket in shared.tickets_of(number)]
    if len(set(drawn)) != len(drawn):
        wrong.append('two clients drew one ticket')
    if not max(drawn) <= store.add('tickets', 0) <= total['asked']:
        wrong.append('there are tickets that nobody drew')
    sums = sum(int(store.get(f'sum/{lock}')) for lock in range(LOCKS))
    if abs(sums - total['sums']) > total['cut']:
        wrong.append(f'{sums} under locks, {total["sums"]} were counted, {total["cut"]} cut short')
    keys = [f'{name}/{n}' for name in ('count', 'big') for n in range(CLIENTS)] + ['tickets']
    keys += [f'{name}/{lock}' for name in ('lock', 'sum') for lock in range(LOCKS)]
    if store.num_keys() != len(keys):
        wrong.append(f'{store.num_keys()} keys, {len(keys)} were made')
    if not all([store.delete_key(key) for key in keys]) or store.num_keys() != 0:
        wrong.append('keys are missing, or too many')
    return total


def main():
    port, seed, seconds = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    clients = StressClients(port, seed)
    before = dist.TCPStore('127.0.0.1', port, is_master=False, wait_for_workers=False)
    for lock in range(LOCKS):
        before.set(f'lock/{lock}', 'free')
        before.set(f'sum/{lock}', '0')
    least, _ = server_facts(port)
    clients.run(seconds)
    clients.end()
    left = leaks(port, least)
    total = judge(before, clients.shared, clients.wrong)
    report = {'wrong': clients.wrong, 'leaks': left, 'processes': sum(clients.processes), **total}
    report['kills'] = {'waiting': clients.kills[IN_WAIT], 'locked': clients.kills[IN_LOCK],
                       'else': clients.kills[NOTHING]}
    print(json.dumps(report))


if __name__ == '__main__':
    main()
