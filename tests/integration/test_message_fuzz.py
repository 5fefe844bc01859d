"""A foreign client sends valid and broken sequences of control messages to the coordinator of a
running job: the job continues unchanged, /status answers, and memory stays bounded.

15 s; CPPRUN_ALL: 5 minutes. MESSAGE_FUZZ_SEED repeats the choices of a run.
"""

import json
import os
import random
import socket
import struct
import threading
import time

from http_client import page
from long_tests import RUN_LONG
from message_grammar import Grammar
from nodes import SLOWEST, Job, cluster  # noqa: F401
from nodes_wire import MAGIC, PROTOCOL, mac_of, node_id_of, pack, unpack
from process_info import memory_kib
from test_admin_commands import TOKEN

SECONDS = 300 if RUN_LONG else 15
SEED = int(os.environ.get('MESSAGE_FUZZ_SEED') or time.time())
MOST_OPEN = 40
MEMORY_KIB = 64 * 1024
STATUS_SECONDS = 1 * SLOWEST
UNTOUCHED = ('phase', 'round', 'restarts_used', 'hang_restarts_used', 'admin_restarts',
             'max_restarts', 'wanted_nodes', 'resumed_from')


class Peer:
    """One connection of the foreign client."""

    def __init__(self, fuzz):
        self.fuzz, self.random, self.grammar = fuzz, fuzz.random, fuzz.grammar
        self.sock = socket.create_connection(('127.0.0.1', fuzz.port), 100)
        self.data, self.is_open, self.is_shut = b'', True, False
        self.key = self.random.choice(('key a', 'key b', f'key {self.random.random()}'))
        self.send(MAGIC if self.random.random() < 0.95 else self.random.randbytes(8))
        if self.random.random() < 0.95:
            self.send_message('hello', self.hello())
        if self.random.random() < 0.8:
            self.send_message('register', self.register())

    def mutated(self, fields, struct, chance):
        if self.random.random() >= chance:
            return fields
        other = self.grammar.fields(struct)
        for name in self.random.sample(list(other), min(len(other), self.random.randint(1, 3))):
            fields[name] = other[name]
            if self.random.random() < 0.2:
                del fields[name]
        return fields

    def hello(self):
        run_id = self.fuzz.run_id if self.random.random() < 0.9 else self.random.choice('abc')
        node = node_id_of(self.key)
        if self.random.random() < 0.1:
            node = self.random.choice(self.grammar.known['int64_t'])
        fields = {'protocol': PROTOCOL, 'version': '0', 'run_id': run_id, 'token': self.key,
                  'connection': self.random.choice((1, 2, 3, 2**62)),
                  'node': {'name': 'fake', 'incarnation': node}}
        return self.mutated(fields, 'Hello', 0.1)

    def register(self):
        spec = {**self.grammar.fields('JobSpec'), 'min_nodes': 2, 'max_nodes': 2,
                'max_restarts': 3, 'master_addr': '', 'master_port': 0, 'last_call_ns': -1,
                'scale_up_interval_ns': 30 * 10**9, 'heartbeat_ns': 10**9,
                'node_lease_ns': 5 * 10**9, 'startup_failures': 0, 'has_fixed_ranks': False,
                'is_agent_store': False, 'is_store_on_main_port': False}
        fields = {'job_spec': self.mutated(spec, 'JobSpec', 0.1), 'addresses': ['127.0.0.1'],
                  'local_addr': '', 'nproc': 1, 'role': 'default', 'node_rank': None,
                  'reserved_port': 9, 'reported_phase': 0, 'round': 0, 'term': 0}
        if self.random.random() < 0.2:
            fields.update(round=self.random.choice(self.grammar.known['int64_t']),
                          assignment=self.grammar.fields('RankAssignment'), reported_phase=1)
        return self.mutated(fields, 'Register', 0.3)

    def send_message(self, name, fields):
        body = pack([name, fields])
        frame = struct.pack('<I', len(body)) + body
        chance = self.random.random()
        if chance < 0.02:
            frame = frame[:self.random.randint(0, len(frame))]
        elif chance < 0.04:
            broken = bytearray(frame)
            for _ in range(self.random.randint(1, 4)):
                broken[self.random.randrange(len(broken))] = self.random.randrange(256)
            frame = bytes(broken)
        elif chance < 0.05:
            frame = struct.pack('<I', self.random.choice((0, 2**31, 2**32 - 1, 5))) + body
        elif chance < 0.15 and self.fuzz.sent:
            frame = self.random.choice(self.fuzz.sent)  # a replay
        self.fuzz.remember(frame)
        self.send(frame)
        self.fuzz.messages += 1

    def send(self, data):
        try:
            self.sock.sendall(data)
        except OSError:
            self.is_open = False

    def act(self):
        for _ in range(self.random.randint(1, 8)):
            chance = self.random.random()
            if chance < 0.1:
                self.send_message('admin_command', self.grammar.fields('AdminCommand'))
            elif chance < 0.15:
                command = {**self.grammar.fields('AdminCommand'), 'kind': self.random.randrange(4)}
                nonce = self.random.choice(self.grammar.known['std::string'])
                mac = mac_of('another token', nonce, self.fuzz.run_id,
                             {'kind': command['kind'], 'nodes': 1, 'node': 'fake'})
                request = {'run_id': self.fuzz.run_id, 'admin_command': command, 'mac': mac}
                self.send_message('admin_request', request)
            elif chance < 0.3:
                self.send_message('ping', {'seq': self.random.randrange(100)})
            elif chance < 0.35:
                self.send_message('register', self.register())
            else:
                self.send_message(*self.grammar.message())
        self.receive()
        if self.random.random() < 0.1:
            self.end()

    def receive(self):
        """Takes what has come, without waiting."""
        try:
            more = self.sock.recv(1 << 20, socket.MSG_DONTWAIT)
            self.is_open = self.is_open and bool(more)
            self.data += more
        except BlockingIOError:
            pass
        except OSError:
            self.is_open = False
        while len(self.data) >= 4:
            size = struct.unpack('<I', self.data[:4])[0]
            if len(self.data) < 4 + size:
                break
            self.grammar.learn(unpack(self.data[4:4 + size])[0][1])
            self.data = self.data[4 + size:]

    def end(self):
        self.is_open = False
        if self.random.random() < 0.5:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.sock.close()


class Fuzz:
    def __init__(self, job):
        self.port, self.run_id = job.port, job.run_id
        self.random = random.Random(SEED)
        self.grammar = Grammar(self.random)
        self.sent, self.peers, self.messages, self.connections = [], [], 0, 0

    def remember(self, frame):
        if len(frame) > 4096:
            return
        if len(self.sent) < 300:
            self.sent.append(frame)
        else:
            self.sent[self.random.randrange(300)] = frame

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if len(self.peers) < MOST_OPEN and self.random.random() < 0.3:
                self.peers.append(Peer(self))
                self.connections += 1
            if self.peers:
                peer = self.random.choice(self.peers)
                peer.act()
            for peer in [p for p in self.peers if not p.is_open]:
                peer.sock.close()
                self.peers.remove(peer)
        for peer in self.peers:
            peer.end()


class StatusReader(threading.Thread):
    """Asks for /status all the time."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.slowest, self.answers, self.error = port, 0.0, 0, None
        self.is_over = threading.Event()

    def ask(self):
        return json.loads(page(self.port, '/status'))

    def run(self):
        try:
            while not self.is_over.wait(0.1):
                start = time.monotonic()
                self.ask()
                self.slowest = max(self.slowest, time.monotonic() - start)
                self.answers += 1
        except (OSError, ValueError) as error:
            self.error = error


def test_message_sequences_leave_the_job_untouched(cluster):
    job = Job(cluster, 2, lease=60, restarts=3)
    limits = {'NODES_SECONDS': str(SECONDS + 60 * SLOWEST)}
    host = job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN, **limits)
    job.agent(1, **limits)
    world = cluster.world(0, 1)
    reader = StatusReader(job.port)
    before = reader.ask()
    memory = memory_kib(host.pid)
    reader.start()
    fuzz = Fuzz(job)
    fuzz.run(SECONDS)
    reader.is_over.set()
    reader.join()
    grown = memory_kib(host.pid) - memory
    numbers = (f'seed {SEED}: {fuzz.messages} messages, {fuzz.connections} connections, '
               f'/status at most {1000 * reader.slowest:.0f} ms of {reader.answers} answers, '
               f'{grown} KiB more memory')
    print(numbers)
    assert not reader.error and reader.answers > 0, (numbers, reader.error)
    assert reader.slowest < STATUS_SECONDS, numbers
    assert grown < MEMORY_KIB, numbers
    assert host.running(), host.describe(numbers)
    assert [w.round for w in cluster.worlds(job.run_id)] == [world.round], host.describe(numbers)
    assert all(worker.alive() for worker in world), host.describe(numbers)
    assert '\x1b' not in host.err() and '\u202e' not in host.err(), numbers
    after = reader.ask()['jobs'][job.run_id]
    for name in UNTOUCHED:
        assert after[name] == before['jobs'][job.run_id][name], (numbers, name, after)
    cluster.finish(seconds=90)
