"""A taken port: reported immediately, with its number and its owner."""

import os
import socket

import pytest
from conftest import BIN, free_port, has_no_traces


def listener(port, host='127.0.0.1', family=socket.AF_INET):
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    made.bind((host, port))
    made.listen()
    return made


def foreign_listener(jobs, port):
    """A separate process that listens at the port; returns its pid."""
    code = (
        'import os, signal, socket\n'
        's = socket.socket()\n'
        's.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n'
        f's.bind(("0.0.0.0", {port}))\ns.listen()\n'
        'print("listening", flush=True)\nsignal.pause()'
    )
    running = jobs.start(jobs.script(code, '/usr/bin/env python3'))
    running.wait_for('listening')
    return running.pid


def expect_refused(running, port, *texts):
    assert running.done(10) == 1, running.output
    assert str(port) in running.err
    for text in texts:
        assert str(text) in running.err, running.err
    assert len(running.err.splitlines()) <= 2
    assert has_no_traces(running.err)


def test_port_name_of_a_foreign_process(jobs):
    """Any user may bind the abstract name by which agents reserve a port."""
    port = free_port()
    with socket.socket(socket.AF_UNIX) as name:
        name.bind(f'\0cpprun/port/{port}')
        name.listen()
        running = jobs.cpprun(f'--master-port={port}', jobs.sh('true'))
        cure = 'choose another with --master-port, or end what holds it'
        expect_refused(running, port, f'is taken by pid {os.getpid()}', cure)


def test_master_port_of_a_foreign_process(jobs):
    port = free_port()
    holder = foreign_listener(jobs, port)
    running = jobs.cpprun(f'--master-port={port}', jobs.sh('echo x >"$MARKS/started"'))
    expect_refused(running, port, holder, '--master-port')
    assert not (jobs.marks / 'started').exists()


def test_master_port_of_another_cpprun(jobs):
    port = free_port()
    first = jobs.cpprun(f'--master-port={port}', jobs.sh('echo up >"$MARKS/up"; exec sleep 60'))
    jobs.mark('up')
    second = jobs.cpprun(f'--master-port={port}', jobs.sh(':'))
    expect_refused(second, port, first.pid, 'cpprun', '--master-port')
    assert first.process.poll() is None


def test_taken_port_of_the_endpoint(jobs):
    port = free_port()
    holder = foreign_listener(jobs, port)
    running = jobs.cpprun(
        '--rdzv-backend=c10d',
        f'--rdzv-endpoint=127.0.0.1:{port}',
        '--rdzv-conf=is_host=1',
        jobs.sh(':'),
    )
    expect_refused(running, port, holder)


def test_silent_listener_at_the_endpoint_ends_at_the_join_timeout(jobs):
    port = free_port()
    foreign_listener(jobs, port)
    running = jobs.cpprun(
        '--rdzv-backend=c10d',
        f'--rdzv-endpoint=127.0.0.1:{port}',
        '--rdzv-conf=join_timeout=3',
        jobs.sh('echo x >"$MARKS/started"'),
    )
    assert running.done(15) == 1, running.output
    assert str(port) in running.err
    assert has_no_traces(running.err)
    assert not (jobs.marks / 'started').exists()


def test_web_server_at_the_endpoint_is_no_rendezvous(jobs):
    port = free_port()
    code = (
        'import http.server\n'
        f's = http.server.HTTPServer(("127.0.0.1", {port}), http.server.SimpleHTTPRequestHandler)\n'
        'print("listening", flush=True)\ns.serve_forever()'
    )
    jobs.start(jobs.script(code, '/usr/bin/env python3')).wait_for('listening')
    running = jobs.cpprun(
        '--rdzv-backend=c10d',
        f'--rdzv-endpoint=127.0.0.1:{port}',
        '--rdzv-conf=join_timeout=3',
        jobs.sh(':'),
    )
    assert running.done(15) == 1, running.output
    assert str(port) in running.err
    assert has_no_traces(running.err)


@pytest.mark.parametrize('host', ['127.0.0.1', '0.0.0.0'])
def test_cpprunctl_names_the_owner_of_its_port(jobs, host):
    port = free_port()
    holder = foreign_listener(jobs, port)
    running = jobs.start(BIN / 'cpprunctl', 'serve', '--listen', f'{host}:{port}', is_split=True)
    expect_refused(running, port, holder)


def test_port_is_free_again_immediately(jobs):
    port = free_port()
    for _ in range(3):
        running = jobs.cpprun(f'--master-port={port}', jobs.sh(':'))
        assert running.done(20) == 0, running.output


def test_lingering_connections_do_not_hold_the_port(jobs):
    """Connections of earlier clients in TIME_WAIT do not hold the port."""
    port = free_port()
    server = listener(port)
    client = socket.create_connection(('127.0.0.1', port))
    accepted, _ = server.accept()
    accepted.close()
    server.close()
    client.close()
    running = jobs.cpprun(f'--master-port={port}', jobs.sh(':'))
    assert running.done(20) == 0, running.output


def test_many_concurrent_launches_get_their_own_ports(jobs):
    worker = jobs.sh('echo "port $MASTER_PORT"; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done')
    started = [jobs.cpprun(worker) for _ in range(6)]
    ports = [running.wait_for(r'port (\d+)')[1] for running in started]
    (jobs.marks / 'go').touch()
    assert [running.done(20) for running in started] == [0] * 6
    assert len(set(ports)) == 6, ports


# ---------------------------------------------------------------- the agent's store

# Connects to MASTER_PORT, adds 1 to a key by TCPStore's bytes, and prints the answer.
ADD = """
import os, socket, struct
s = socket.create_connection((os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])), 60)
key = b'came'
s.sendall(b'\\x00' + struct.pack('<I', 0x3C85F7CE))
s.sendall(b'\\x04' + struct.pack('<Q', len(key)) + key + struct.pack('<q', 1))
print('count', struct.unpack('<q', s.recv(8, socket.MSG_WAITALL))[0], os.environ['MASTER_PORT'])
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0': raise SystemExit(3)
"""


@pytest.mark.parametrize('addr', ['127.0.0.1', 'localhost'])
def test_agents_store_listens_at_the_given_port(jobs, addr):
    port = free_port()
    args = (f'--master-addr={addr}', f'--master-port={port}', '--worker-store=agent')
    running = jobs.cpprun(*args, '--max-restarts=1', jobs.py(ADD))
    assert running.done() == 0, running.output
    assert running.out.split('\n')[:2] == [f'count 1 {port}'] * 2, 'each round has an empty store'


def test_agents_store_listens_at_a_free_port(jobs):
    args = ('--master-port=0', '--worker-store=agent', '--max-restarts=1')
    running = jobs.cpprun(*args, jobs.py(ADD))
    assert running.done() == 0, running.output
    ports = [int(line.split()[2]) for line in running.out.splitlines()]
    assert len(ports) == 2 and 0 not in ports


def test_taken_port_of_the_agents_store_is_named(jobs):
    port = free_port()
    holder = foreign_listener(jobs, port)
    running = jobs.cpprun(f'--master-port={port}', '--worker-store=agent', jobs.sh(':'))
    expect_refused(running, port, holder)
