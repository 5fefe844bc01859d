"""Peers that vanish without a FIN: the link of their network namespace goes down."""

import pathlib
import re
import subprocess
import sys

from nodes import BIN, Job, cluster, wait_for  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401

PORT = 29431
STORE_CLIENTS, READERS = 20, 8

# Opens idle store clients and readers of /events, and keeps them.
PEER = f"""
import socket, sys, time
made = []
for number in range({STORE_CLIENTS + READERS}):
    made.append(socket.create_connection((sys.argv[1], {PORT})))
    if number < {STORE_CLIENTS}:
        made[-1].sendall(b'\\0\\xce\\xf7\\x85\\x3c' + b'\\x0d1234')
        assert made[-1].recv(4) == b'1234'
    else:
        made[-1].sendall(b'GET /events HTTP/1.1\\r\\n\\r\\n')
        assert made[-1].recv(12) == b'HTTP/1.1 200'
print('open', flush=True)
time.sleep(3600)
"""


def metric(host, name):
    ask = f'import urllib.request as u; print(u.urlopen("http://127.0.0.1:{PORT}/metrics").read())'
    output = subprocess.run([*host, sys.executable, '-c', ask], capture_output=True, text=True,
                            timeout=60, check=True).stdout
    return int(re.search(rf'{name} (\d+)', output)[1])


def test_half_open_connections_end_within_a_minute_or_so(cluster, net):
    hosts = net(2)
    server = subprocess.Popen(
        [*hosts.wrap(0), str(BIN / 'cpprunctl'), 'serve', '--listen', f'0.0.0.0:{PORT}'],
        env=cluster.env(), cwd=cluster.tmp, stderr=subprocess.PIPE, text=True)
    cluster.servers.append(server)
    assert 'serving on' in server.stderr.readline()
    peer = subprocess.Popen([*hosts.wrap(1), sys.executable, '-c', PEER, hosts.addr(0)],
                            env=cluster.env(), stdout=subprocess.PIPE, text=True)
    cluster.servers.append(peer)
    assert peer.stdout.readline() == 'open\n'
    assert metric(hosts.wrap(0), 'cpprun_event_readers') == READERS
    hosts.cable(1, False)
    wait_for(lambda: metric(hosts.wrap(0), 'cpprun_event_readers') == 0, 'readers to end', 12)
    # wait_for() multiplies the 12 s. The connection that asks counts too.
    wait_for(lambda: metric(hosts.wrap(0), 'cpprun_connections') == 1, 'store clients to end', 12)


ESTABLISHED, KEEPALIVE_TIMER = '01', '02'  # in /proc/net/tcp


def timers(port):
    """The timer of each connection to this port or from it."""
    found = []
    for table in ('tcp', 'tcp6'):
        for line in pathlib.Path(f'/proc/net/{table}').read_text().splitlines()[1:]:
            _, own, peer, state, _, timer = line.split()[:6]
            if state == ESTABLISHED and f'{port:04X}' in (own[-4:], peer[-4:]):
                found.append(timer[:2])
    return found


def test_agents_and_their_coordinator_probe_each_other(cluster):
    """The kernel probes each of their connections, on both sides."""
    job = Job(cluster, 2, lease=60)  # few messages: the timer of a message on its way hides that
    job.agents(0, 1)
    cluster.world(0, 1)
    # A connection of each agent, and both ends of it are on this machine.
    wait_for(lambda: timers(job.port) == [KEEPALIVE_TIMER] * 4, lambda: timers(job.port))
    cluster.finish()
