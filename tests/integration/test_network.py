"""Hostile and broken peers at the rendezvous port: only they suffer."""

import contextlib
import os
import random
import resource
import socket
import struct
import time
import urllib.request

import pytest
from conftest import BIN, free_port, has_no_traces, is_alive, poll
from process_info import memory_kib

MAGIC = b'CPRN'
STORE_HELLO = b'\x00\xce\xf7\x85\x3c'  # VALIDATE of torch 2.2 and later


def connect(port, seconds=50):
    return socket.create_connection(('127.0.0.1', port), timeout=seconds)


def healthz(port):
    """Seconds until /healthz has answered."""
    start = time.monotonic()
    with urllib.request.urlopen(f'http://127.0.0.1:{port}/healthz', timeout=50) as answer:
        assert answer.status == 200
        assert answer.read().strip() == b'ok'
    return time.monotonic() - start


def is_dropped(peer, seconds=50):
    """The other side ends the connection; ignores earlier answers."""
    peer.settimeout(seconds)
    try:
        while peer.recv(65536):
            pass
        return True
    except TimeoutError:
        return False
    except OSError:
        return True


def send(port, data):
    """Sends as much as possible; returns whether the peer was dropped."""
    with connect(port) as peer:
        with contextlib.suppress(OSError):
            peer.sendall(data)
        return is_dropped(peer)


class Target:
    """A port under attack, and the services that must keep working there."""

    def __init__(self, port, running, end):
        self.port = port
        self.running = running
        self.end = end  # lets it end; returns the exit code

    def check(self):
        healthz(self.port)
        assert self.running.process.poll() is None, self.running.output


def start_job(jobs):
    port = free_port()
    worker = jobs.sh('echo "up $RANK"; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done; echo end')
    running = jobs.cpprun(
        '--rdzv-backend=c10d',
        f'--rdzv-endpoint=127.0.0.1:{port}',
        '--nproc-per-node=2',
        worker,
    )
    running.wait_for_all(r'^up \d', 2)

    def end():
        (jobs.marks / 'go').touch()
        code = running.done(20)
        assert running.out.count('end\n') == 2, running.output
        return code

    return Target(port, running, end)


def start_server(jobs):
    running = jobs.start(BIN / 'cpprunctl', 'serve', '--listen', '127.0.0.1:0', is_split=True)
    port = int(running.wait_for(r'serving on .*:(\d+)')[1])

    def end():
        running.process.terminate()
        return running.done(10)

    return Target(port, running, end)


@pytest.fixture(params=[start_job, start_server], ids=['job', 'serve'])
def target(request, jobs):
    made = request.param(jobs)
    yield made
    made.check()
    assert made.end() == 0, made.running.output
    assert has_no_traces(made.running.output), made.running.output
    assert jobs.wait_until_gone() == []


def frame(body):
    return struct.pack('<I', len(body)) + body


def test_random_bytes_do_no_harm(target):
    dice = random.Random(7)
    for _ in range(200):
        data = dice.randbytes(dice.randrange(1, 3000))
        with connect(target.port) as peer, contextlib.suppress(OSError):
            peer.sendall(data)
    target.check()


def test_random_bytes_after_every_prefix(target):
    dice = random.Random(8)
    for start in (MAGIC, STORE_HELLO, b'GET /', b'\x00', b'\x01', b'POST / HTTP/1.1\r\n'):
        for _ in range(30):
            with connect(target.port) as peer, contextlib.suppress(OSError):
                peer.sendall(start + dice.randbytes(dice.randrange(1, 500)))
    target.check()


@pytest.mark.parametrize(
    'data',
    [
        MAGIC + struct.pack('<I', 65537) + b'x',
        MAGIC + struct.pack('<I', 0xFFFFFFFF),
        MAGIC + struct.pack('<I', 0),
        MAGIC + frame(b'\x91' * 60000),
        MAGIC + frame(b'\x81\xa1a' * 20000),
        MAGIC + frame(b'\x92\xa5hello\xdf\xff\xff\xff\xff'),
        MAGIC + frame(b'\x92\xa5hello\xc0'),
        MAGIC + frame(b'\x92\xa5hello\x80'),
        MAGIC + frame(b'\x92\xa5hello\x81\xa7version\xa3abc'),
        MAGIC + frame(b'\x92\xa4ping\x80'),
        MAGIC + frame(b'\x92\xa3foo\x80') * 3,
        MAGIC + frame(b'\xff' * 100),
        b'CPRX' + b'x' * 100,
        STORE_HELLO + b'\x01' + struct.pack('<Q', 1 << 60),
        STORE_HELLO + bytes([250]),
    ],
    ids=[
        *('oversized', 'huge', 'empty', 'nested-lists', 'nested-maps', 'endless-map', 'no-map'),
        *('no-fields', 'wrong-type', 'before-hello', 'unknown', 'no-msgpack', 'wrong-magic'),
        *('store-huge-length', 'store-unknown-command'),
    ],
)
def test_broken_frame_drops_its_peer(target, data):
    assert send(target.port, data)
    target.check()


def test_truncated_frames_do_no_harm(target):
    whole = MAGIC + frame(b'\x92\xa5hello\x80')
    for size in range(1, len(whole)):
        with connect(target.port) as peer:
            peer.sendall(whole[:size])
    target.check()


def test_hello_in_single_bytes(target):
    """Broken at its end, so that the answer is an end: byte by byte gives the same result as at
    once."""
    with connect(target.port) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError):
            for byte in MAGIC + frame(b'\x92\xa5hello\xc0'):
                peer.sendall(bytes([byte]))
        assert is_dropped(peer)


def test_http_in_single_bytes(target):
    with connect(target.port) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in b'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n':
            peer.sendall(bytes([byte]))
        assert b'200' in peer.recv(1000)


@pytest.mark.parametrize(
    'text, answer',
    [
        (b'GET /' + b'a' * 20000 + b' HTTP/1.1\r\n\r\n', b'431|414|400'),
        (b'GET / HTTP/9.9\r\n\r\n', b'400|404|505'),
        (b'GET nonsense\r\n\r\n', b'400'),
        (b'POST /healthz HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n', b'400|405|413'),
        (b'DELETE /status HTTP/1.1\r\nHost: localhost\r\n\r\n', b'405'),
        (b'GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\n\r\n', b'404'),
        (b'GET /status HTTP/1.1\r\n' + b'X: y\r\n' * 5000 + b'\r\n', b'431|400'),
        (b'GET /\x00\xff\xfe HTTP/1.1\r\n\r\n', b'400|404'),
    ],
    ids=['path', 'version', 'line', 'length', 'method', 'dots', 'header', 'bytes'],
)
def test_http_garbage_gets_an_http_error(target, text, answer):
    with connect(target.port) as peer:
        with contextlib.suppress(OSError):
            peer.sendall(text)
        got = b''
        with contextlib.suppress(OSError):
            while more := peer.recv(65536):
                got += more
    assert got == b'' or any(code in got.split(b'\r\n')[0] for code in answer.split(b'|')), got
    target.check()


def test_slowloris_clients_are_dropped(target):
    """After ten seconds without a complete first command, wherever it stopped."""
    starts = [b'', MAGIC[:2], MAGIC, MAGIC + b'\x40', STORE_HELLO[:3], b'GET /heal']
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(connect(target.port)) for _ in starts]
        for peer, start in zip(peers, starts, strict=True):
            peer.sendall(start)
        assert [start for peer, start in zip(peers, starts, strict=True)
                if not is_dropped(peer, 150)] == []
    target.check()


def test_thousand_silent_connections(target):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2000), hard))
    with contextlib.ExitStack() as stack:
        usual = min(healthz(target.port) for _ in range(20))
        for _ in range(1000):
            stack.enter_context(connect(target.port))
        assert min(healthz(target.port) for _ in range(20)) < 20 * usual
        target.check()


def test_connections_that_come_and_go(target):
    def descriptors():
        return len(os.listdir(f'/proc/{target.running.pid}/fd'))

    before = descriptors()
    for _ in range(1000):
        connect(target.port).close()
    poll(lambda: descriptors() <= before, 10, lambda: f'{descriptors()} descriptors, not {before}')


def test_peers_that_reset(target):
    for data in (b'', MAGIC, MAGIC + b'\x05\x00', STORE_HELLO, b'GET /status HTTP/1.1\r\n\r\n'):
        for _ in range(20):
            with connect(target.port) as peer:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 0))
                peer.sendall(data)
    target.check()


def text(value):
    return struct.pack('<Q', len(value)) + value


def store_peer(port):
    peer = connect(port)
    peer.sendall(STORE_HELLO)
    return peer


def test_peer_that_stops_reading(target):
    """It requests pages, or values, without end; other clients are still served."""
    with connect(target.port) as peer:
        peer.setblocking(False)
        asked = 0
        with contextlib.suppress(OSError):
            for _ in range(20000):
                asked += peer.send(b'GET /status HTTP/1.1\r\nHost: localhost\r\n\r\n')
        target.check()
    with store_peer(target.port) as peer:
        peer.setblocking(False)
        with contextlib.suppress(OSError):
            peer.send(b'\x01' + text(b'k') + text(b'v' * 100_000))
            for _ in range(20000):
                peer.send(b'\x03' + text(b'k'))
        target.check()
        assert memory_kib(target.running.pid) < 200_000


def test_torchrun_agent_does_no_harm(target):
    """The c10d rendezvous of torchrun asks the store for its own keys."""
    with store_peer(target.port) as peer:
        peer.sendall(b'\x0d' + struct.pack('<I', 4711))  # PING
        assert peer.recv(4) == struct.pack('<I', 4711)
        key = text(b'/torch.rendezvous.none')
        with contextlib.suppress(OSError):
            peer.sendall(b'\x02' + key + text(b'') + text(b'state'))  # COMPARE_SET
            peer.settimeout(2)
            peer.recv(100)
    target.check()


def test_torchrun_agent_is_named_at_a_jobs_port(jobs):
    job = start_job(jobs)
    with store_peer(job.port) as peer:
        peer.sendall(b'\x02' + text(b'/torch.rendezvous.none') + text(b'') + text(b'state'))
        assert is_dropped(peer)
    assert job.end() == 0
    assert 'torchrun' in job.running.err


def test_all_attacks_together_and_the_job_still_restarts(jobs):
    """A worker dies during an attack; the next round forms."""
    port = free_port()
    worker = jobs.sh(
        'echo "up $TORCHELASTIC_RESTART_COUNT $$"\n'
        'while [ ! -e "$MARKS/go$TORCHELASTIC_RESTART_COUNT" ]; do sleep 0.02; done\n'
        '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ]'
    )
    running = jobs.cpprun(
        '--rdzv-backend=c10d',
        f'--rdzv-endpoint=127.0.0.1:{port}',
        '--max-restarts=1',
        worker,
    )
    first = int(running.wait_for(r'up 0 (\d+)')[1])
    dice = random.Random(9)
    with contextlib.ExitStack() as stack:
        for _ in range(200):
            peer = stack.enter_context(connect(port))
            with contextlib.suppress(OSError):
                peer.sendall(dice.choice([b'', MAGIC, b'GET ', dice.randbytes(20)]))
        (jobs.marks / 'go0').touch()
        running.wait_for(r'up 1 (\d+)', 10)
        assert not is_alive(first)
        healthz(port)
        (jobs.marks / 'go1').touch()
        assert running.done(20) == 0, running.output
