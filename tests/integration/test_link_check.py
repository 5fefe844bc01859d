"""--link-check: before a round, nodes exchange data in pairs, and a node whose link has failed is
left out. The nodes are network namespaces; each has a host name of its own.
"""

import subprocess

import pytest

from long_tests import long
from nodes import Job, cluster, free_port  # noqa: F401
from nodes_net import named, namespaces, net  # noqa: F401
from tls_peers import write_secret

MIB = 4


class Hosts:
    """The hosts of a net; node 1 runs on host n1."""

    def __init__(self, net):  # noqa: F811
        self.net = net

    def wrap(self, node):
        return [*self.net.wrap(node), *named(f'n{node}')]


def in_host(net, node, *command):  # noqa: F811
    subprocess.run([*net.wrap(node), *command], check=True, capture_output=True)


def break_link(net, node, port):  # noqa: F811
    """Only packets to the job's endpoint leave this host."""
    in_host(net, node, 'ip', 'rule', 'add', 'priority', '100', 'ipproto', 'tcp', 'dport', str(port),
            'lookup', 'main')
    in_host(net, node, 'ip', 'rule', 'add', 'priority', '200', 'to', '10.230.7.0/24', 'blackhole')


def start(cluster, net, count, nnodes, *options, prepare=None, **how):  # noqa: F811
    hosts = net(count)
    port = free_port()
    if prepare:
        prepare(hosts, port)
    job = Job(cluster, nnodes, host=hosts.addr(0), port=port, net=Hosts(hosts),
              last_call_timeout=600, **how)
    return [job.agent(node, f'--link-check={MIB}', *options) for node in range(count)]


@pytest.mark.parametrize('options', [[], ['secret']], ids=['plain', 'tls'])
def test_good_links_let_the_round_form(cluster, net, options):  # noqa: F811
    if options:
        options = [f'--secret-file={write_secret(cluster.tmp / "secret")}']
    agents = start(cluster, net, 3, 3, *options)
    cluster.world(0, 1, 2)
    assert not any('link' in agent.err() for agent in agents)
    cluster.finish(seconds=60)


def test_node_with_a_bad_link_takes_part_in_no_round(cluster, net):  # noqa: F811
    agents = start(cluster, net, 4, '3:4', '--exclude-after=2',
                   prepare=lambda hosts, port: break_link(hosts, 3, port))
    cluster.world(0, 1, 2, seconds=90)
    agents[3].prints('the network link of n3 has failed its check, so it takes part in no round: n')
    cluster.finish(seconds=60)


@long
def test_job_that_needs_the_node_continues_when_its_link_is_mended(cluster, net):  # noqa: F811
    found = []

    def prepare(hosts, port):
        found.append(hosts)
        break_link(hosts, 2, port)
    agents = start(cluster, net, 3, 3, prepare=prepare)
    agents[2].prints('the network link of n2 has failed its check', 90)
    agents[0].prints('2 of at least 3 nodes joined', 60)
    in_host(found[0], 2, 'ip', 'rule', 'del', 'priority', '200')
    cluster.world(0, 1, 2, seconds=150)
    cluster.finish(seconds=60)


def test_two_nodes_without_a_link_form_their_round_with_a_warning(cluster, net):  # noqa: F811
    agents = start(cluster, net, 2, 2, prepare=lambda hosts, port: break_link(hosts, 1, port))
    cluster.world(0, 1, seconds=60)
    agents[0].prints('it is not known which node is at fault')
    cluster.finish(seconds=60)


def test_slow_link_is_reported_and_takes_part(cluster, net):  # noqa: F811
    def prepare(hosts, port):
        # Up to 256 KiB at once, which the control connection needs; then 32 Mbit/s.
        in_host(hosts, 5, 'tc', 'qdisc', 'add', 'dev', 'eth0', 'root', 'tbf', 'rate', '32mbit',
                'burst', '256k', 'latency', '400ms')
    agents = start(cluster, net, 6, 6, prepare=prepare)
    cluster.world(0, 1, 2, 3, 4, 5, seconds=60)
    agents[0].prints('the network link of n5 is slow: ')
    cluster.finish(seconds=60)


def test_lossy_link_is_reported(cluster, net):  # noqa: F811
    """The host loses each twentieth packet that it sends, those of the control connection too."""
    def prepare(hosts, port):
        # Otherwise a packet here is one of 64 KiB, of which there are too few.
        in_host(hosts, 5, 'ip', 'link', 'set', 'eth0', 'gso_max_segs', '1')
        in_host(hosts, 5, 'iptables', '-A', 'OUTPUT', '-m', 'statistic', '--mode', 'random',
                '--probability', '0.05', '-j', 'DROP')
    agents = start(cluster, net, 6, '5:6', prepare=prepare)
    agents[0].prints('the network link of n5 is slow: ', 60)
    cluster.world(0, 1, 2, 3, 4, 5, seconds=60)
    cluster.finish(seconds=60)
