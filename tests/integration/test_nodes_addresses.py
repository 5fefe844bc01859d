"""Endpoints and addresses of agents: hosts in network namespaces."""

import ipaddress
import signal
import socket

from nodes import Job, cluster, free_port, wait_for  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401

LOCAL = '127.0.0.1 localhost\n'


def assert_reachable_master(world, hosts, card=0):
    """The master's address is the numeric one of the node with group rank 0."""
    address = ipaddress.ip_address(world.master[0])
    zero = next(w.node for w in world if w.group == 0)
    assert address == ipaddress.ip_address(hosts.addr(zero, card))


# ---------------------------------------------------------------- names


def test_name_with_several_addresses(cluster, net):
    """The first address never answers; the agent tries all at once."""
    hosts = net(3)
    for i in range(3):
        hosts.etc(i, 'hosts', LOCAL + f'10.230.7.99 rdzv\n{hosts.addr(0)} rdzv\n')
    job = Job(cluster, 3, host='rdzv', net=hosts)
    job.agents(2, 1, 0)
    assert_reachable_master(cluster.world(0, 1, 2), hosts)
    cluster.finish()


def test_hosts_own_name_may_mean_loopback(cluster, net):
    """Debian maps the host name to 127.0.1.1; the others see another address."""
    hosts = net(2)
    hosts.etc(0, 'hosts', LOCAL + '127.0.1.1 node-a\n')
    hosts.etc(1, 'hosts', LOCAL + f'{hosts.addr(0)} node-a\n')
    job = Job(cluster, 2, host='node-a', net=hosts)
    job.agents(0, 1)
    assert_reachable_master(cluster.world(0, 1), hosts)
    cluster.finish()


def test_host_is_found_by_address_without_name_resolution(cluster, net):
    """All have the same name. The node with the endpoint's address hosts, though it is last."""
    hosts = net(3)
    job = Job(cluster, 3, host=hosts.addr(2), net=hosts)
    job.agents(0, 1, LOGLEVEL='INFO')
    cluster.agents[0].prints("can't reach the coordinator")
    job.agent(2)
    assert_reachable_master(cluster.world(0, 1, 2), hosts)
    cluster.finish()


def test_numeric_addresses_need_no_resolver(cluster, net):
    """A resolver that never answers: numeric addresses need none."""
    hosts = net(2)
    for i in range(2):
        hosts.etc(i, 'resolv.conf', 'nameserver 10.230.7.200\noptions timeout:30 attempts:5\n')
        hosts.etc(i, 'hosts', '')
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    agents = job.agents(0, 1)
    world = cluster.world(0, 1)
    assert world.begun - agents[0].started < 100, 'a question takes 150 s'
    assert_reachable_master(world, hosts)
    cluster.finish()


# ---------------------------------------------------------------- addresses


def test_nodes_with_ipv6_alone_form_a_job(cluster, net):
    hosts = net(2, 'v6')
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    job.agents(0, 1)
    world = cluster.world(0, 1)
    assert_reachable_master(world, hosts)
    assert world[0].env['CPPRUN_STORE'].startswith('[fd00:7::1]:')
    cluster.finish()


def test_card_towards_the_coordinator_counts(cluster, net):
    hosts = net(2, 'two')
    job = Job(cluster, 2, host=hosts.addr(0, 1), net=hosts)
    job.agents(0, 1)
    assert_reachable_master(cluster.world(0, 1), hosts, card=1)
    cluster.finish()


def test_local_addr_overrides_detection(cluster, net):
    hosts = net(2, 'two')
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    for node in (0, 1):
        job.agent(node, f'--local-addr={hosts.addr(node, 1)}')
    assert_reachable_master(cluster.world(0, 1), hosts, card=1)
    cluster.finish()


def test_is_host_true_hosts_behind_a_foreign_address(cluster, net):
    """Behind a forwarding gateway: the endpoint is no address of the host."""
    hosts = net(2)
    hosts.etc(0, 'hosts', LOCAL + '10.230.7.77 gateway\n')
    hosts.etc(1, 'hosts', LOCAL + f'{hosts.addr(0)} gateway\n')
    job = Job(cluster, 2, host='gateway', net=hosts)
    job.agent(0, conf={'is_host': 'true'})
    job.agent(1, conf={'is_host': 'false'})
    world = cluster.world(0, 1)
    assert not ipaddress.ip_address(world.master[0]).is_loopback
    assert_reachable_master(world, hosts)
    cluster.finish()


def test_is_host_false_never_hosts(cluster):
    job = Job(cluster, 1, join_timeout=3)
    agent = job.agent(0, conf={'is_host': 'false'}).ends(1)
    assert 'Connection refused' in agent.err(), agent.describe()
    assert not cluster.workers()


# ---------------------------------------------------------------- out of reach


def test_unreachable_endpoint_is_reported_and_ends(cluster, net):
    """Every address with its reason and duration; at most a line a minute (here a second)."""
    hosts = net(1)
    hosts.etc(0, 'hosts', LOCAL + '10.230.7.98 rdzv\nfd00::1 rdzv\n127.0.0.9 other\n')
    job = Job(cluster, 2, host='rdzv', net=hosts, join_timeout=8)
    agent = job.agent(0, CPPRUN_TEST_MINUTE='1').ends(1)
    lines = [line for line in agent.err().splitlines() if "can't reach the coordinator" in line]
    assert lines and all(f'rdzv:{job.port} for ' in line for line in lines), agent.describe()
    assert '10.230.7.98: ' in lines[-1] and 'fd00::1: ' in lines[-1], agent.describe()
    assert len(lines) <= 7, agent.describe()
    assert 'timed out after 8 s' in agent.err() and 'tried last: ' in agent.err()


def test_unknown_name_is_reported_and_ends(cluster):
    job = Job(cluster, 2, host='no-such-host.invalid', join_timeout=4)
    agent = job.agent(0).ends(1)
    assert agent.err().count("the name 'no-such-host.invalid' can't be resolved") in (2, 3), \
        agent.describe()


def test_join_timeout_counts_whole_minutes(cluster):
    job = Job(cluster, 2, host='127.0.0.1', join_timeout=5)
    agent = job.agent(0, conf={'is_host': 'false'}).ends(1)
    assert agent.err().count("can't reach the coordinator") == 1, agent.describe()


# ---------------------------------------------------------------- two jobs, one endpoint


def test_hosts_job_ends_first_and_the_other_continues(cluster):
    port = free_port()
    one = Job(cluster, 2, port=port, run_id='one')
    two = Job(cluster, 2, port=port, run_id='two', restarts=1)
    host = one.host(0)
    others = two.agents(10, 11)
    one.agent(1)
    first = cluster.world(0, 1, job='one')
    begun = cluster.world(10, 11, job='two')
    assert first.master != begun.master
    cluster.exit_workers(0, f'round-one-{first.round}')
    cluster.agents[-1].ends(0)
    host.prints('other agents still need the rendezvous')
    cluster.exit_workers(1, begun[0])  # and it still forms rounds
    again = cluster.world(10, 11, job='two', after=begun)
    cluster.exit_workers(0, f'round-two-{again.round}')
    [a.ends(0) for a in (*others, host)]


def test_host_that_stays_for_others_ends_on_a_signal_with_its_own_outcome(cluster):
    port = free_port()
    one = Job(cluster, 1, port=port, run_id='one')
    two = Job(cluster, 1, port=port, run_id='two', join_timeout=2, lease=2.0)
    host = one.host(0)
    first = cluster.world(0, job='one')
    other = two.agent(10)
    cluster.world(10, job='two')
    cluster.exit_workers(0, f'round-one-{first.round}')
    host.prints('staying until they end')
    host.send(signal.SIGTERM)
    host.ends(0)
    other.ends(1)


# ---------------------------------------------------------------- static


def test_static_restarts_at_the_given_port(cluster, net):
    hosts = net(2)
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts, static=True, restarts=1)
    job.agents(1, 0, nproc=2)
    first = cluster.world(0, 1)
    cluster.exit_workers(1, first.of(1)[0])
    second = cluster.world(0, 1, after=first)
    for world in (first, second):
        assert world.master == (hosts.addr(0), str(job.port))
        assert world.ranks == {0: 0, 1: 1}
        assert {w.env['TORCHELASTIC_USE_AGENT_STORE'] for w in world} == {'True'}
    assert second.restarts == [1]
    cluster.finish()


def test_static_replaces_a_dead_node(cluster):
    job = Job(cluster, 2, static=True, lease=3000.0)
    job.host(0)
    victim = job.agent(1)
    first = cluster.world(0, 1)
    victim.send(signal.SIGKILL)
    wait_for(lambda: job.status()['phase'] == 'waiting_for_nodes', job.status)
    cluster.agents.remove(victim)
    job.agent(1)
    second = cluster.world(0, 1, after=first)
    assert second.ranks == first.ranks
    cluster.finish()


def test_duplicate_static_node_rank_is_rejected(cluster):
    job = Job(cluster, 3, static=True)
    host = job.host(0, LOGLEVEL='INFO')
    job.agent(1)
    job.wait_members(2)
    twin = job.agent(1).ends(1)
    assert '--node-rank=1 is taken by the agent on ' + socket.gethostname() in twin.err()
    host.prints('--node-rank=1 is taken')
    job.agent(2)
    cluster.world(0, 1, 2)
    cluster.exit_workers(0)
    [a.ends(0) for a in cluster.agents if a is not twin]


def test_static_node_rank_out_of_range_is_rejected(cluster):
    job = Job(cluster, 2, static=True)
    agent = job.agent(2).ends(1)
    assert 'ranks go from 0 to 1' in agent.err()
