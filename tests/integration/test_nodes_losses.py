"""Agents that leave, die, freeze or lose their cable, in every state, and returning ones. Leases
are short in tests of silence, and too long to matter in the others.
"""

import re
import signal

import pytest

from nodes import Job, cluster, is_alive, wait_for  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401

LONG = 3000.0  # a lease too long to have an effect
SHORT = 2.0


def states(job):
    return sorted(n['state'] for n in job.status().get('nodes', []))


# ---------------------------------------------------------------- leaving and dying


def test_leave_reforms_the_round_immediately(cluster):
    job = Job(cluster, '1:2', lease=LONG)
    job.host(0)
    leaver = job.agent(1)
    first = cluster.world(0, 1)
    leaver.send(signal.SIGTERM)
    second = cluster.world(0, after=first, seconds=10)
    assert second.restarts == [0], 'a leave costs no restart'
    leaver.ends(128 + signal.SIGTERM)
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)


def test_killed_agent_ends_its_workers_and_the_others_continue(cluster):
    job = Job(cluster, '1:3', lease=LONG, last_call_timeout=600)
    job.host(0)
    job.agents(1, 2, nproc=2)
    first = cluster.world(0, 1, 2)
    cluster.agents[1].send(signal.SIGKILL)
    second = cluster.world(0, 2, after=first, seconds=10)
    assert second.restarts == [0]
    wait_for(lambda: not any(w.alive() for w in first), 'the old world to be gone', 2)
    cluster.exit_workers(0)
    [cluster.agents[i].ends(0) for i in (0, 2)]


def test_fixed_size_waits_for_a_replacement(cluster):
    job = Job(cluster, 2, lease=LONG)
    job.host(0)
    job.agent(1)
    first = cluster.world(0, 1)
    cluster.agents[1].send(signal.SIGKILL)
    wait_for(lambda: job.status()['phase'] == 'waiting_for_nodes', job.status)
    assert job.status()['why_no_round'].startswith('1 of at least 2 nodes joined: ')
    job.agent(2)
    second = cluster.world(0, 2, after=first)
    assert second.restarts == [0]
    cluster.exit_workers(0)
    [cluster.agents[i].ends(0) for i in (0, 2)]


def test_below_min_after_a_loss_ends_at_the_join_timeout(cluster):
    job = Job(cluster, 2, lease=LONG, join_timeout=3)
    host = job.host(0)
    job.agent(1)
    world = cluster.world(0, 1)
    cluster.agents[1].send(signal.SIGKILL)
    host.ends(1)
    assert 'timed out after 3 s' in host.err() and '1 of at least 2 nodes' in host.err()
    warnings = re.findall(r'^warning: the agent on .* died; stopping the workers', host.err(), re.M)
    assert len(warnings) == 1, host.describe()
    assert not any(w.alive() for w in world)


def test_agent_killed_while_it_stops_its_workers(cluster):
    """Its workers ignore SIGTERM; the reaper process ends them, and the next round forms without
    it."""
    job = Job(cluster, '1:2', lease=LONG, restarts=1, last_call_timeout=600)
    job.host(0)
    stubborn = job.agent(1, NODES_STUBBORN='1')
    first = cluster.world(0, 1)
    cluster.exit_workers(1, first.of(0)[0])
    wait_for(lambda: job.status()['phase'] == 'stopping', job.status)
    assert first.of(1)[0].alive()
    stubborn.send(signal.SIGKILL)
    second = cluster.world(0, after=first, seconds=10)
    assert second.restarts == [1]
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)


# ---------------------------------------------------------------- frozen


def test_frozen_agents_workers_die_within_the_worker_lease_and_it_returns(cluster):
    job = Job(cluster, '1:2', lease=SHORT, last_call_timeout=600, scale_up_interval=0)
    job.host(0)
    frozen = job.agent(1)
    first = cluster.world(0, 1)
    frozen.send(signal.SIGSTOP)
    second = cluster.world(0, after=first, seconds=15)
    assert not first.of(1)[0].alive()
    frozen.send(signal.SIGCONT)
    third = cluster.world(0, 1, after=second)
    assert third.restarts == [0] and third.ranks[0] == 0
    cluster.finish()


def test_frozen_agents_workers_that_ignore_sigterm_die_too(cluster):
    """They ignore SIGTERM, and the agent that would kill them is frozen while stopping."""
    job = Job(cluster, '1:2', lease=SHORT, restarts=1, last_call_timeout=600, scale_up_interval=0)
    job.host(0)
    frozen = job.agent(1, NODES_STUBBORN='1')
    first = cluster.world(0, 1)
    cluster.exit_workers(1, first.of(0)[0])
    wait_for(lambda: job.status()['phase'] == 'stopping', job.status)
    frozen.send(signal.SIGSTOP)
    second = cluster.world(0, after=first, seconds=15)
    assert not first.of(1)[0].alive()
    frozen.send(signal.SIGCONT)
    third = cluster.world(0, 1, after=second)
    assert third.restarts == [1]
    cluster.finish()


def test_frozen_while_joining(cluster):
    """A round may form with it; it is excluded again when its lease ends."""
    job = Job(cluster, '2:3', lease=SHORT, last_call_timeout=600, scale_up_interval=0)
    job.host(0)
    frozen = job.agent(1)
    job.wait_members(2)
    frozen.send(signal.SIGSTOP)
    job.agent(2)
    first = cluster.world(0, 2)
    frozen.send(signal.SIGCONT)
    cluster.world(0, 1, 2, after=first)
    cluster.finish()


def test_frozen_when_done_does_not_end_the_round(cluster):
    job = Job(cluster, 2, lease=SHORT)
    host, frozen = job.host(0), job.agent(1)
    world = cluster.world(0, 1)
    cluster.exit_workers(0, 'node-1')
    wait_for(lambda: 'done' in states(job), job.status)
    frozen.send(signal.SIGSTOP)
    job.wait_members(1)
    assert world.of(0)[0].alive()
    cluster.exit_workers(0)
    host.ends(0)
    frozen.send(signal.SIGCONT)  # its job is over and no node is left to report the outcome
    cluster.agents.append(frozen)
    frozen.send(signal.SIGTERM)
    frozen.ends(75)  # no worker runs there
    assert len(cluster.worlds()) == 1


def test_frozen_host_of_the_coordinator_wakes_and_continues(cluster):
    """No other node can decide meanwhile; all workers are gone when their worker lease ends."""
    job = Job(cluster, 2, lease=SHORT)
    host = job.host(0)
    job.agent(1)
    first = cluster.world(0, 1)
    host.send(signal.SIGSTOP)
    wait_for(lambda: not first.of(1)[0].alive(), 'workers without a worker lease to be gone')
    host.send(signal.SIGCONT)
    second = cluster.world(0, 1, after=first)
    assert second.restarts == [0]
    cluster.finish()


def test_short_freeze_keeps_the_round(cluster):
    job = Job(cluster, 2, lease=LONG)
    job.host(0)
    agent = job.agent(1)
    world = cluster.world(0, 1)
    for _ in range(3):
        agent.send(signal.SIGSTOP)
        wait_for(lambda: agent.running() and _is_stopped(agent), 'the freeze')
        agent.send(signal.SIGCONT)
    assert all(w.alive() for w in world)
    cluster.finish()
    assert len(cluster.worlds()) == 1


def _is_stopped(agent):
    with open(f'/proc/{agent.pid}/stat', encoding='utf-8') as stat:
        return stat.read().rsplit(')', 1)[1].split()[0] == 'T'


# ---------------------------------------------------------------- the cable


def test_unplugged_node_is_left_behind_and_returns(cluster, net):
    hosts = net(3)
    job = Job(cluster, '2:3', host=hosts.addr(0), net=hosts, lease=SHORT, scale_up_interval=0)
    job.agents(0, 1, 2)
    first = cluster.world(0, 1, 2)
    hosts.cable(2, False)
    second = cluster.world(0, 1, after=first, seconds=15)
    assert not first.of(2)[0].alive(), 'fenced before the others continued'
    hosts.cable(2, True)
    third = cluster.world(0, 1, 2, after=second)
    assert third.restarts == [0] and third.ranks[2] == 2
    cluster.finish()


def test_short_cable_loss_keeps_the_round(cluster, net):
    """Out for two heartbeats, back before the worker lease ends."""
    hosts = net(2)
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts, lease=12.0)
    job.agents(0, 1)
    world = cluster.world(0, 1)
    hosts.cable(1, False)
    assert all(w.alive() for w in world)
    hosts.cable(1, True)
    cluster.finish()
    assert len(cluster.worlds()) == 1


def test_permanently_unplugged_node_ends_at_its_join_timeout(cluster, net):
    hosts = net(2)
    job = Job(cluster, '1:2', host=hosts.addr(0), net=hosts, lease=SHORT, join_timeout=5)
    job.agents(0, 1)
    first = cluster.world(0, 1)
    hosts.cable(1, False)
    cluster.world(0, after=first, seconds=15)
    lost = cluster.agents[1].ends(1)
    assert 'timed out after 5 s' in lost.err(), lost.describe()
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)


def test_unplugged_while_joining(cluster, net):
    hosts = net(3)
    job = Job(cluster, 3, host=hosts.addr(0), net=hosts, lease=SHORT)
    job.agent(0, LOGLEVEL='INFO').prints('waiting: 1 of at least 3')
    job.agent(1, LOGLEVEL='INFO').prints('waiting: 2 of at least 3')
    hosts.cable(1, False)
    cluster.agents[0].prints('nothing was heard from')
    hosts.cable(1, True)
    job.agent(2)
    cluster.world(0, 1, 2)
    cluster.finish()


def test_unplugged_while_stopping(cluster, net):
    """Its workers ignore SIGTERM, and its 'stopped' cannot arrive."""
    hosts = net(2)
    job = Job(cluster, '1:2', host=hosts.addr(0), net=hosts, lease=SHORT, restarts=1,
              scale_up_interval=0)
    job.agent(0)
    job.agent(1, NODES_STUBBORN='1', LOGLEVEL='INFO')
    first = cluster.world(0, 1)
    cluster.exit_workers(1, first.of(0)[0])
    cluster.agents[1].prints('restarting all')
    hosts.cable(1, False)
    second = cluster.world(0, after=first, seconds=15)
    assert not first.of(1)[0].alive()
    hosts.cable(1, True)
    third = cluster.world(0, 1, after=second)
    assert third.restarts == [1]
    cluster.finish()


@pytest.mark.parametrize('returns', [True, False])
def test_unplugged_when_done(cluster, net, returns):
    """The round continues; back in time the node learns the outcome, otherwise it reports it as
    unknown."""
    hosts = net(2)
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts, lease=SHORT, join_timeout=6)
    job.agent(0, LOGLEVEL='INFO')
    cut = job.agent(1)
    world = cluster.world(0, 1)
    cluster.exit_workers(0, 'node-1')
    wait_for(lambda: not is_alive(world.of(1)[0].pid), 'the end of its worker')
    hosts.cable(1, False)
    cluster.agents[0].prints('nothing was heard from')
    assert world.of(0)[0].alive()
    if returns:
        hosts.cable(1, True)
        cut.prints('')
    else:
        cluster.exit_workers(0)
        cluster.agents[0].ends(0)
        cut.ends(1)
        assert 'outcome is unknown' in cut.err(), cut.describe()
        return
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)
    cut.ends(lambda code: code in (0, 1), seconds=15)
    assert len(cluster.worlds()) == 1
