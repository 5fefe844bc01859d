"""The worker SDK's store client (store_client_driver) against every kind of server, compared with
torch's own client.

CPPRUN_BIN names the folder of the programs (default build/check/bin). Needs torch; skipped without.
"""

import datetime
import os
import pathlib
import signal
import socket
import subprocess
import threading
import time

import pytest

dist = pytest.importorskip('torch.distributed')

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', ROOT / 'build/check/bin'))
SECONDS = 20


class Cpp:
    """A StoreClient in its own process. Keys and values are bytes or text."""

    def __init__(self, address, timeout=SECONDS, connect=SECONDS, prefix='', checks_in=False):
        args = [address, int(timeout * 1000), int(connect * 1000), prefix, int(checks_in)]
        command = [BIN / 'store_client_driver', *map(str, args)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.connected = self.reply()

    def reply(self):
        return self.process.stdout.readline().rstrip('\n')

    def send(self, *args):
        made = [self.encoded(value) for value in args]
        self.process.stdin.write(' '.join(made) + '\n')
        self.process.stdin.flush()

    def __call__(self, verb, *args):
        self.send(verb.encode(), *args)
        return self.reply()

    @staticmethod
    def encoded(value):
        """Verbs and numbers are sent unchanged."""
        if isinstance(value, bytes):
            return value.decode()
        return str(value) if isinstance(value, int) else (value.encode().hex() or '-')

    def end(self):
        self.process.kill()
        self.process.communicate()


def value(data):
    return f'ok {data.hex() or "-"}'


def serve(kind):
    """(port, function that stops it)"""
    if kind == 'cpprun':
        command = [BIN / 'cpprunctl', 'serve', '--listen', '127.0.0.1:0']
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = process.stderr.readline()

        def stop():
            process.send_signal(signal.SIGTERM)
            assert process.wait(10) == 0

        return int(line.rsplit(':', 1)[1]), stop
    master = dist.TCPStore(
        '127.0.0.1', 0, is_master=True, wait_for_workers=False, use_libuv=kind == 'torch-libuv'
    )
    return master.port, lambda m=master: m.port


@pytest.fixture(scope='module', params=['cpprun', 'torch-libuv', 'torch-threads'])
def server(request):
    port, stop = serve(request.param)
    yield request.param, port
    stop()


@pytest.fixture
def port(server):
    return server[1]


@pytest.fixture
def python(port):
    return dist.TCPStore(
        '127.0.0.1', port, is_master=False, timeout=datetime.timedelta(seconds=SECONDS)
    )


@pytest.fixture
def cpp(port):
    made = []

    def make(**options):
        made.append(Cpp(f'127.0.0.1:{port}', **options))
        assert made[-1].connected == 'ok'
        return made[-1]

    yield make
    for client in made:
        client.end()


# Calls that both clients make in sequence, below their own keys.
SCRIPT = [
    ('set', 'a', 'one'),
    ('get', 'a'),
    ('set', 'a', ''),
    ('get', 'a'),
    ('add', 'n', 5),
    ('add', 'n', -12),
    ('get', 'n'),
    ('add', 'n', 2**62),
    ('append', 'a', 'x'),
    ('append', 'new', 'begin'),
    ('append', 'new', 'ning'),
    ('get', 'new'),
    ('compare_set', 'c', '', 'made'),
    ('compare_set', 'c', 'wrong', 'not'),
    ('compare_set', 'c', 'made', 'changed'),
    ('compare_set', 'missing', 'expected', 'never'),
    ('check', 'missing'),
    ('check', 'a'),
    ('check', 'a', 'missing'),
    ('multi_set', 'm1', '1', 'm2', '', 'm3', '333'),
    ('multi_get', 'm3', 'm1', 'm2', 'm1'),
    ('delete_key', 'm2'),
    ('delete_key', 'm2'),
    ('check', 'm2'),
    ('wait', 'a', 'm1'),
    ('wait', 'm1', 'm1'),
    ('num_keys',),
]


def twin(store, verb, *args):
    """The answer of torch's own client to the same call, in the C++ client's format."""
    if verb in ('check', 'multi_get', 'wait'):
        got = getattr(store, verb)([f'py/{w}' for w in args])
    elif verb == 'multi_set':
        got = store.multi_set([f'py/{w}' for w in args[::2]], list(args[1::2]))
    else:
        got = getattr(store, verb)(*[f'py/{w}' for w in args[:1]], *args[1:])
    if got is None:
        return 'ok'
    if isinstance(got, list):
        return ' '.join(['ok', *(g.hex() or '-' for g in got)])
    if isinstance(got, bytes):
        return value(got)
    return f'ok {str(got).lower()}'


def test_every_call_answers_as_in_python(cpp, python):
    client = cpp(prefix='cpp')
    for verb, *args in SCRIPT:
        expected = twin(python, verb, *args)
        spoken = [SECONDS * 1000, *args] if verb == 'wait' else args
        if verb == 'num_keys':
            expected = f'ok {python.num_keys()}'
        assert client(verb, *spoken) == expected, (verb, args)
    for key in ('a', 'n', 'new', 'c', 'm1', 'm3'):
        assert python.get(f'cpp/{key}') == python.get(f'py/{key}')


def test_bytes_of_any_kind_and_length(cpp, python):
    client = cpp()
    python.set('zeros', bytes(range(256)) * 4)
    assert client('get', 'zeros') == value(bytes(range(256)) * 4)
    client('set_long', 'long', 5_000_000)
    assert python.get('long') == b'x' * 5_000_000
    assert client('get_size', 'long') == 'ok 5000000'
    client('set', 'k' * 8000, 'long key')
    assert python.get('k' * 8000) == b'long key'


def test_values_above_the_limit_of_torchs_libuv_server(server, cpp, python):
    client = cpp(timeout=10)
    client('set_long', 'huge', 20 << 20)
    if server[0] == 'torch-libuv':
        assert client('get_size', 'huge').startswith('error Network')
        assert 'is closed, because: ' in client('get', 'huge')
    else:
        assert client('get_size', 'huge') == f'ok {20 << 20}'
        python.delete_key('huge')


def test_client_rejects_keys_and_values_that_no_store_accepts(cpp):
    client = cpp()
    assert client('set', 'k' * 8192, '').startswith('error BadValue')
    assert client('get', 'k' * 8192).startswith('error BadValue')
    assert client('set_long', 'v', (1 << 30) + 1).startswith('error BadValue')
    assert client('set', 'k' * 8191, '') == 'ok', 'nothing of the refused ones was sent'
    assert client('num_keys').startswith('ok ')


def test_get_and_multi_get_wait_for_their_keys(cpp, python):
    client = cpp()
    client.send(b'get', 'later')
    time.sleep(0.1)
    python.set('later', 'came')
    assert client.reply() == value(b'came')
    client.send(b'multi_get', 'later', 'later still')
    time.sleep(0.1)
    python.set('later still', 'too')
    assert client.reply() == value(b'came') + ' ' + b'too'.hex()


def test_timed_out_wait_leaves_the_client_usable(cpp, python):
    client = cpp(timeout=0.2)
    for i in range(5):
        for spoken in (('wait', 200, f'no{i}'), ('get', f'no{i}'), ('multi_get', f'no{i}')):
            start = time.monotonic()
            assert client(*spoken) == f'error Timeout wait timeout after 200ms, keys: no{i}'
            assert 0.19 < time.monotonic() - start < 2
        python.set(f'no{i}', 'late')
        assert client('get', f'no{i}') == value(b'late')


def test_cancel_and_set_at_the_same_moment(cpp, python):
    """Answer and cancel cross on the wire; the client must stay in step with its bytes."""
    client = cpp()
    for i in range(100):
        timer = threading.Timer(0.010, lambda i=i: python.set(f'cross/{i}', 'x'))
        timer.start()
        assert client('wait', 10, f'cross/{i}').startswith(('ok', 'error Timeout wait timeout'))
        timer.join()
        assert client('add', 'cross/n', 1) == f'ok {i + 1}'


def test_queues_with_a_python_client(server, cpp, python):
    client = cpp(timeout=0.5)
    if server[0] == 'torch-threads':
        client('queue_push', 'q', 'x')
        assert client('queue_len', 'q').startswith('error Network'), 'this server has no queues'
        return
    python.queue_push('q', 'one')
    assert python.queue_len('q') == 1  # a push alone is not answered
    client('queue_push', 'q', '')
    assert client('queue_len', 'q') == 'ok 2'
    assert client('queue_pop', 'q', b'block') == value(b'one')
    assert python.queue_pop('q') == b''
    assert client('queue_pop', 'q', b'now') == "error Refused queue 'q' is empty"
    assert client('queue_pop', 'q', b'block') == 'error Timeout wait timeout after 500ms, keys: q'
    client.send(b'queue_pop', 'q', b'block')
    python.queue_push('q', 'pushed')
    assert client.reply() == value(b'pushed')


def test_barrier_is_reusable_and_leaves_two_keys(cpp, python):
    clients = [cpp(prefix='here') for _ in range(3)]
    before = python.num_keys()
    for _ in range(30):
        for client in clients[:-1]:
            client.send(b'barrier', 'b', 3)
        time.sleep(0.002)
        assert clients[-1]('barrier', 'b', 3) == 'ok'
        assert [client.reply() for client in clients[:-1]] == ['ok', 'ok']
    assert python.num_keys() == before + 2


def test_barrier_names_how_many_are_missing(cpp):
    client = cpp(timeout=0.3)
    assert client('barrier', 'lonely', 4) == (
        "error Timeout barrier timeout after 300ms, key: 'lonely': 1 of 4 came"
    )
    assert client('num_keys').startswith('ok ')


def test_add_to_text_that_is_no_number(cpp):
    client = cpp()
    client('set', 'word', 'abc')
    assert client('add', 'word', 1).startswith('error Network')
    assert 'is closed, because: ' in client('num_keys')


def test_python_rank_0_counts_the_cpp_worker():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
    client = None
    made = []

    def lead():
        limit = datetime.timedelta(seconds=SECONDS)
        made.append(dist.TCPStore('127.0.0.1', port, 2, True, timeout=limit))

    leader = threading.Thread(target=lead)
    client_thread = threading.Thread(
        target=lambda: made.append(Cpp(f'127.0.0.1:{port}', checks_in=True))
    )
    client_thread.start()  # connects before the server listens
    leader.start()
    leader.join(SECONDS + 5)
    client_thread.join(SECONDS + 5)
    client = next(m for m in made if isinstance(m, Cpp))
    store = next(m for m in made if not isinstance(m, Cpp))
    assert client.connected == 'ok'
    store.set('hello', 'you')
    assert client('get', 'hello') == value(b'you')
    client.end()


def test_ipv6_in_brackets_and_names(tmp_path):
    command = [BIN / 'cpprunctl', 'serve', '--listen', '[::1]:0']
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    port = int(process.stderr.readline().rsplit(':', 1)[1])
    client = Cpp(f'[::1]:{port}')
    assert client.connected == 'ok'
    assert client('add', 'n', 1) == 'ok 1'
    client.end()
    process.terminate()
    process.wait(10)


def test_unreachable_server():
    with socket.socket() as s:
        s.bind(('127.0.0.1', 0))
        port = s.getsockname()[1]
        start = time.monotonic()
        client = Cpp(f'localhost:{port}', connect=0.5)
    assert 0.4 < time.monotonic() - start < 2
    assert client.connected.startswith(f'error Timeout no store at localhost:{port}: tried ')
    assert 'Connection refused (errno 111)' in client.connected
    for bad in ('localhost', 'localhost:x', '[::1:5', ''):
        assert Cpp(bad, connect=0.1).connected.startswith('error BadValue'), bad
    unknown = Cpp('no-such-host.invalid:5', connect=0.1).connected
    assert unknown.startswith("error Timeout no store at no-such-host.invalid:5: tried")
    assert "looking up 'no-such-host.invalid'" in unknown
