"""Memory and descriptors of the store server, read from the kernel while it runs."""

import contextlib
import re
import resource
import shutil
import socket
import struct

import pytest
from conftest import BIN, poll
from process_info import memory_kib

HELLO = b'\x00\xce\xf7\x85\x3c'  # VALIDATE of torch 2.2 and later
CODES = (1, 2, 3, 8, 13, 14, 15)
SET, COMPARE_SET, GET, DELETE, PING, PUSH, POP = (bytes([code]) for code in CODES)
CLIENT = 1000  # connections from one address; the next ones come from another
MIB = 1 << 20
LARGE = 64 * MIB


def text(value):
    return struct.pack('<Q', len(value)) + value


class Client:
    """One connection after its handshake."""

    def __init__(self, port, number=0):
        self.socket = socket.socket()
        self.socket.settimeout(20)
        # The kernel chooses the port when it knows the peer. RST closes it without TIME_WAIT.
        self.socket.setsockopt(socket.IPPROTO_IP, 24, 1)  # IP_BIND_ADDRESS_NO_PORT
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
        self.socket.bind((f'127.0.0.{2 + number // CLIENT}', 0))
        self.socket.connect(('127.0.0.1', port))
        self.socket.sendall(HELLO)
        self.ping()

    def ask(self, request, size):
        """The next `size` bytes after `request` is sent."""
        self.socket.sendall(request)
        parts = []
        while size:
            parts.append(self.socket.recv(min(size, MIB)))
            assert parts[-1], 'the server has ended the connection'
            size -= len(parts[-1])
        return b''.join(parts)

    def ping(self):
        assert self.ask(PING + b'1234', 4) == b'1234'


class Serving:
    def __init__(self, jobs, *wrap, options=(), env=None):
        command = [*wrap, BIN / 'cpprunctl', 'serve', '--listen', '127.0.0.1:0', *options]
        self.running = jobs.start(*command, is_split=True, env=env)
        self.port = int(self.running.wait_for(r'serving on .*:(\d+)')[1])
        self.clients = contextlib.ExitStack()

    def client(self, number=0):
        made = Client(self.port, number)
        self.clients.enter_context(made.socket)
        return made

    def end(self):
        self.clients.close()
        self.running.process.terminate()
        return self.running.done(20)


@pytest.fixture
def serve(jobs):
    """serve(*prefix) starts a server; it must end with success."""
    with contextlib.ExitStack() as stack:

        def start(*wrap, **how):
            serving = Serving(jobs, *wrap, **how)
            stack.callback(lambda: check_end(serving))
            return serving

        yield start


def check_end(serving):
    assert serving.end() == 0, serving.running.output


@pytest.fixture
def descriptors():
    """Raises the descriptor limit as far as the kernel allows; returns it."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.parametrize('size', [None, 60, 2000, 5000], ids=str)
def test_idle_connection_costs_at_most_4_kib(serve, descriptors, size):
    """1,000 and 10,000 connections without a request, or after a set and get of a value of this
    size."""
    if descriptors < 10_100:
        pytest.skip('needs 10,100 descriptors (ulimit -Hn)')
    serving = serve('sh', '-c', 'ulimit -S -n 64; exec "$@"', 'sh')  # the server raises it
    first = serving.client()
    value = b'v' * (size or 0)
    before = memory_kib(serving.running.pid)
    for number in range(1, 10_001):
        client = serving.client(number)
        if size:
            key = text(b'key/%d' % (number % 8))
            assert client.ask(SET + key + text(value) + GET + key, 8 + size) == text(value)
        if number in (1000, 10_000):
            each = (memory_kib(serving.running.pid) - before) * 1024 / number
            print(f'{number} connections, values of {size}: {each:.0f} bytes each')
            assert each <= 4096, f'{number} connections'
    first.ping()


def test_large_value_is_in_memory_once(serve):
    """64 MiB set, read by two, compared, pushed and popped: never more than one copy of the value.
    """
    serving = serve()
    first, second = serving.client(), serving.client()
    value, key = b'v' * LARGE, text(b'key')
    before = memory_kib(serving.running.pid)

    def is_gone():
        return memory_kib(serving.running.pid) - before < 4096

    def is_right(reply):
        return len(reply) == 8 + LARGE and reply.endswith(value[:MIB])

    first.socket.sendall(SET + key + text(value))
    assert is_right(first.ask(GET + key, 8 + LARGE))
    assert is_right(second.ask(GET + key, 8 + LARGE))
    assert first.ask(DELETE + key, 8) == struct.pack('<q', 1)
    poll(is_gone, 20, 'the value is freed')
    assert is_right(first.ask(COMPARE_SET + key + text(b'') + text(value), 8 + LARGE))
    assert first.ask(DELETE + key, 8) == struct.pack('<q', 1)
    poll(is_gone, 20, 'the compared value is freed')
    first.socket.sendall(PUSH + key + text(value))
    first.ping()  # a push has no answer of its own, and a pop does not wait
    assert is_right(second.ask(POP + key, 16 + LARGE)[8:])
    poll(is_gone, 20, 'the item is freed')
    more = memory_kib(serving.running.pid, 'VmHWM') - before - LARGE // 1024
    print(f'{more} KiB more than the value')
    assert more < 2048


def allocations(serve, rounds):
    """The server's number of allocations, counted by valgrind."""
    serving = serve('valgrind')
    clients = [serving.client() for _ in range(16)]
    value = b'v' * 900
    for _ in range(rounds):
        for number, client in enumerate(clients):
            key = text(b'a key that is somewhat long/%d' % number)
            client.socket.sendall(SET + key + text(value[number:]) + GET + key)
        for number, client in enumerate(clients):
            assert client.ask(b'', 8 + 900 - number) == text(value[number:])
    assert serving.end() == 0
    assert 'ERROR SUMMARY: 0 errors' in serving.running.output, serving.running.output
    total = re.search(r'total heap usage: ([\d,]+) allocs', serving.running.output)[1]
    return int(total.replace(',', ''))


@pytest.mark.skipif(shutil.which('valgrind') is None, reason='needs valgrind')
def test_small_values_allocate_nothing(serve):
    few, many = allocations(serve, 5), allocations(serve, 35)
    print(f'{few} allocations with 160 commands, {many} with 1,120')
    assert abs(many - few) < 48  # one in twenty commands


def is_closed(client):
    try:
        return client.socket.recv(1) == b''
    except ConnectionResetError:
        return True


def test_memory_budget_closes_the_client_that_exceeds_it(serve):
    serving = serve(options=['--store-memory-mb', '32'])
    first, second = serving.client(), serving.client()
    key = text(b'a \x1b[31mkey')
    first.socket.sendall(SET + key + text(b'v' * (20 * MIB)))
    first.ping()
    with contextlib.suppress(OSError):
        second.socket.sendall(SET + key + text(b'v' * (20 * MIB)))
    assert is_closed(second)
    message = serving.running.wait_for('dropped the connection from 127.0.0.2.*')[0]
    assert "with key 'a key'" in message, message
    assert first.ask(DELETE + key, 8) == struct.pack('<q', 1)
    third = serving.client()
    third.socket.sendall(SET + key + text(b'v' * (20 * MIB)))
    third.ping()


def test_peers_do_not_fill_the_log(serve):
    serving = serve(env={'LOGLEVEL': 'INFO'})
    for number in range(300):
        with socket.socket() as client:
            client.bind((f'127.0.1.{1 + number % 200}', 0))
            client.connect(('127.0.0.1', serving.port))
            client.sendall(b'\xff\xffnonsense')
            client.settimeout(20)
            with contextlib.suppress(ConnectionResetError):
                assert client.recv(1) == b''
    serving.client().ping()
    lines = serving.running.output.count('speaks none of our protocols')
    assert 1 <= lines <= 64


def test_descriptor_shortage_names_the_needed_number(serve):
    serving = serve('sh', '-c', 'ulimit -n 64; exec "$@"', 'sh')
    first = serving.client()
    with contextlib.suppress(OSError, AssertionError):
        for _ in range(100):
            serving.client()
    message = serving.running.wait_for(r'out of file descriptors \(limit 64\).*')[0]
    assert 'ulimit -Hn 60000' in message and 'LimitNOFILE=60000' in message
    first.ping()
