"""An agent that has run out of descriptors: each of its listening sockets resumes when there are
descriptors again."""

import re
import resource
import socket

from conftest import free_port, poll, read_bytes
from cpprunctl import output_of
from http_client import page
from process_info import LISTENING, tcp_sockets

# Ends a connection to the agent with a broken message, each time that it is asked to.
CHANNEL = """
import os, socket, time
marks = os.environ['MARKS']
open(marks + '/store', 'w').write(os.environ['CPPRUN_STORE'])
for name in ('first', 'second'):
    while not os.path.exists(f'{marks}/{name}'):
        time.sleep(0.02)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as agent:
        agent.connect('\\0' + os.environ['CPPRUN_AGENT'])
        open(f'{marks}/{name}-connected', 'w').write('x')
        agent.send(b'broken')
        try:
            assert agent.recv(100) == b''
        except ConnectionResetError:
            pass
    open(f'{marks}/{name}-closed', 'w').write('x')
while not os.path.exists(marks + '/end'):
    time.sleep(0.02)
"""


def listening_ports(pid):
    return {port for _, port in tcp_sockets(pid, LISTENING)}


def answer_to(port, data, size):
    """What the server answers, up to `size` bytes."""
    with socket.create_connection(('127.0.0.1', port), timeout=100) as peer:
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        return peer.recv(size, socket.MSG_WAITALL)


def test_listening_sockets_resume(jobs):
    meeting, health = free_port(), free_port() + 1
    args = ('--nnodes=1:2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{meeting}',
            '--rdzv-conf=last_call_timeout=0.1', '--snapshot-dir', jobs.folder / 'snapshots')
    job = jobs.cpprun(*args, jobs.py(CHANNEL),
                      env={'TORCHELASTIC_HEALTH_CHECK_PORT': str(health)})
    store = int(jobs.mark('store').rsplit(':', 1)[1])
    # The snapshot server, and the store of the next round.
    others = listening_ports(job.pid) - {meeting, health, store}
    assert others

    def all_answer(mark):
        (jobs.marks / mark).touch()
        assert page(meeting, '/healthz') == 'ok\n'
        assert page(health, '/healthz') == 'ok\n'
        assert len(answer_to(store, bytes.fromhex('00cef7853c07'), 8)) == 8
        for port in others:
            assert answer_to(port, b'broken\n', 1) == b''
        assert str(job.pid) in output_of('ps', '--json', env=jobs.env())
        jobs.mark(f'{mark}-closed')

    all_answer('first')
    usual = resource.prlimit(job.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(job.pid, resource.RLIMIT_NOFILE, (3, usual[1]))
    waiting = [socket.create_connection(('127.0.0.1', port), timeout=100)
               for port in (meeting, health, store, *others)]
    (jobs.marks / 'second').touch()
    jobs.mark('second-connected')
    names = re.findall(rb'@(cpprun/ctl/%d\.\S+)' % job.pid, read_bytes('/proc/net/unix'))
    waiting.append(socket.socket(socket.AF_UNIX))
    waiting[-1].connect(b'\0' + names[0])
    # Long enough for each to have failed: a connection that found no descriptor is still waiting,
    # or was closed at once.
    poll(lambda: 'descriptors' in job.err, what=lambda: job.err)
    assert not (jobs.marks / 'second-closed').exists()
    resource.prlimit(job.pid, resource.RLIMIT_NOFILE, usual)
    all_answer('second')
    for one in waiting:
        one.close()
    (jobs.marks / 'end').touch()
    assert job.done() == 0, job.output
