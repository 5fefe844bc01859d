"""A job that cannot exceed one node: its agent needs no TCP, and no other machine reaches it."""


import pytest
from conftest import free_port, poll, read_bytes
from http_client import page
from process_info import ESTABLISHED, LISTENING, tcp_sockets

WAIT = 'echo "up $RANK"; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done; echo end'


def is_loopback(address):
    return address.endswith('7F') if len(address) == 8 else address == '0' * 24 + '01000000'


def endpoints():
    """Options of a job of one node, and the port that they ask for."""
    port = free_port()
    c10d = ('--rdzv-backend=c10d', '--nnodes=1')
    return {
        'default': ((), None),
        'standalone': (('--standalone',), None),
        'static': (('--nnodes=1', f'--master-port={port}'), None),
        'static_store': (('--nnodes=1', f'--master-port={port}', '--worker-store=agent'), port),
        'c10d': ((*c10d, f'--rdzv-endpoint=localhost:{port}'), port),
        'c10d_any': ((*c10d, '--rdzv-endpoint=localhost:0'), None),
    }


@pytest.mark.parametrize('name', endpoints())
def test_connects_to_its_coordinator_without_tcp(jobs, name):
    options, port = endpoints()[name]
    running = jobs.cpprun(*options, '--nproc-per-node=2', jobs.sh(WAIT))
    running.wait_for_all(r'^up \d', 2)
    assert tcp_sockets(running.pid, ESTABLISHED) == []
    listening = tcp_sockets(running.pid, LISTENING)
    assert listening, 'the job serves its status and its store'
    assert all(is_loopback(address) for address, _ in listening), listening
    assert port is None or port in [number for _, number in listening]
    libraries = read_bytes(f'/proc/{running.pid}/maps').decode()
    assert 'libssl' not in libraries, libraries
    assert 'libcrypto' not in libraries, libraries
    (jobs.marks / 'go').touch()
    assert running.done() == 0, running.output


def test_listens_at_the_endpoint(jobs):
    port = free_port()
    running = jobs.cpprun('--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.2:{port}',
                          jobs.sh(WAIT))
    running.wait_for(r'^up 0')
    assert tcp_sockets(running.pid, ESTABLISHED) == []
    assert ('0200007F', port) in tcp_sockets(running.pid, LISTENING)
    assert page(port, '/status', host='127.0.0.2')
    (jobs.marks / 'go').touch()
    assert running.done() == 0, running.output


def test_restarts_without_tcp(jobs):
    """Failure and a new round pass over the same connection."""
    worker = jobs.sh('[ "$TORCHELASTIC_RESTART_COUNT" = 2 ] || exit 7; ' + WAIT)
    running = jobs.cpprun('--nproc-per-node=2', '--max-restarts=2', worker)
    running.wait_for_all(r'^up \d', 2)
    assert tcp_sockets(running.pid, ESTABLISHED) == []
    (jobs.marks / 'go').touch()
    assert running.done() == 0, running.output


def test_the_coordinator_ends_with_its_agent(jobs):
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(WAIT))
    running.wait_for_all(r'^up \d', 2)
    running.send(15)
    assert running.done() == 143, running.output
    poll(lambda: not jobs.alive(), what='the end of all processes')
