"""Who may use the workers' store, with --worker-store=agent: hosts in network namespaces."""

import subprocess
import sys

import pytest
from nodes import Job, cluster  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401

# Counts the keys of the store: VALIDATE as torch 2.2 and later, then GETNUMKEYS.
CLIENT = """
import socket, sys
to, port, own = sys.argv[1:]
with socket.create_connection((to, int(port)), 100, (own, 0) if own else None) as peer:
    peer.sendall(bytes.fromhex('00cef7853c07'))
    peer.shutdown(socket.SHUT_WR)
    sys.exit(0 if len(peer.recv(8, socket.MSG_WAITALL)) == 8 else 3)
"""
ADMITTED, REFUSED = 0, 3


def use(hosts, host, to, port, own=''):
    """Exit code of a client on this host."""
    command = [*hosts.wrap(host), sys.executable, '-I', '-S', '-c', CLIENT, to, str(port), own]
    return subprocess.run(command, timeout=200).returncode


@pytest.mark.parametrize('allow', ['all', 'members'])
@pytest.mark.parametrize('static', [False, True])
def test_clients_from_other_addresses(cluster, net, allow, static):
    hosts = net(3, 'two')
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts, static=static)
    args = ('--worker-store=agent', f'--store-allow={allow}')
    for node in (0, 1):
        job.agent(node, *args)
    world = cluster.world(0, 1)
    address, port = world.master
    assert address == hosts.addr(0)
    agent = cluster.agents[0]
    assert use(hosts, 0, address, port) == ADMITTED
    assert use(hosts, 1, address, port) == ADMITTED
    assert use(hosts, 2, address, port) == (REFUSED if allow == 'members' else ADMITTED)
    agent.prints(f'a client from {hosts.addr(2)}, an address of no node of the job')
    assert hosts.addr(1) not in agent.err()
    assert agent.err().count('an address of no node') == 1, agent.err()
    assert 'no store is served' not in agent.err()
    cluster.finish()


def test_each_address_of_a_node_counts(cluster, net):
    hosts = net(2, 'two')
    job = Job(cluster, 2, host='rdzv', net=hosts)
    for i in range(2):
        hosts.etc(i, 'hosts', f'127.0.0.1 localhost\n{hosts.addr(0)} rdzv\n')
    for node in (0, 1):
        job.agent(node, '--worker-store=agent', '--store-allow=members')
    _, port = cluster.world(0, 1).master
    for card in (0, 1):
        assert use(hosts, 1, hosts.addr(0, card), port, hosts.addr(1, card)) == ADMITTED
        assert use(hosts, 0, hosts.addr(0, card), port) == ADMITTED
    assert use(hosts, 0, '127.0.0.1', port) == ADMITTED
    assert 'an address of no node' not in cluster.agents[0].err()
    cluster.finish()


def test_spares_do_not_count(cluster, net):
    """Any program that reaches the port can register as a spare."""
    hosts = net(3)
    job = Job(cluster, '1:2', host=hosts.addr(0), net=hosts, last_call_timeout=1)
    args = ('--worker-store=agent', '--store-allow=members')
    for node in (0, 1):
        job.agent(node, *args)
    world = cluster.world(0, 1)
    spare = job.agent(2, *args, LOGLEVEL='INFO')
    spare.prints('spare')
    assert use(hosts, 2, *world.master) == REFUSED
    cluster.finish()
