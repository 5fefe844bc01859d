"""The agent that hosts the coordinator dies or leaves; the standby leads the job (R14 to R17).

docs/protocol.md explains why two rounds never run at once; workers record whether they saw another.
"""

import json
import signal
import time

from cpprunctl import output_of
from nodes import Job, cluster, wait_for  # noqa: F401

AT_ONCE = 3  # the target is 1 s; a busy machine takes longer


def three(cluster, nnodes, **how):
    """Three nodes in one round; node 0 hosts."""
    job = Job(cluster, nnodes, **how)
    job.host(0)
    job.agents(1, 2)
    return job, cluster.world(0, 1, 2)


def test_others_reform_immediately_when_the_host_is_killed(cluster):
    _, first = three(cluster, '2:3', restarts=1)
    killed = time.time()
    cluster.agents[0].send(signal.SIGKILL)
    second = cluster.world(1, 2, after=first)
    assert second.begun - killed < AT_ONCE
    assert second.restarts == [0], 'a lost node costs no restart'
    cluster.exit_workers(3, second[0])
    third = cluster.world(1, 2, after=second)
    assert third.restarts == [1], 'the standby counts as its predecessor did'
    cluster.finish(*cluster.agents[1:])


def test_unused_spare_takes_the_place_of_the_host(cluster):
    job = Job(cluster, 2)
    job.host(0)
    job.agents(1)
    first = cluster.world(0, 1)
    spare = job.agent(2, LOGLEVEL='INFO')
    wait_for(lambda: 'this node is a spare' in spare.err(), 'the spare prints that it is one')
    cluster.agents[0].send(signal.SIGKILL)
    cluster.world(1, 2, after=first)
    cluster.finish(*cluster.agents[1:])


def test_standby_of_a_standby_leads_too(cluster):
    _, first = three(cluster, '1:3')
    cluster.agents[0].send(signal.SIGKILL)
    second = cluster.world(1, 2, after=first)
    standby = next(w.node for w in second if w.rank == 0)
    cluster.agents[standby].send(signal.SIGKILL)
    third = cluster.world(3 - standby, after=second)
    assert len(third) == 1
    cluster.exit_workers(0)
    cluster.agents[3 - standby].ends(0)


def test_host_that_is_asked_to_leave_redirects_the_job(cluster):
    _, first = three(cluster, '1:3')
    cluster.agents[0].send(signal.SIGTERM)
    cluster.world(1, 2, after=first)
    cluster.exit_workers(0)
    cluster.agents[0].ends(lambda code: code != 0)
    [agent.ends(0) for agent in cluster.agents[1:]]


def test_restarted_host_finds_the_new_coordinator(cluster):
    job, first = three(cluster, '1:3')
    cluster.agents[0].send(signal.SIGKILL)
    second = cluster.world(1, 2, after=first)
    job.agent(0)
    cluster.world(0, 1, 2, after=second)
    cluster.finish(*cluster.agents[1:])


def test_cpprunctl_finds_the_new_coordinator(cluster):
    job, first = three(cluster, '1:3')
    cluster.agents[0].send(signal.SIGKILL)
    second = cluster.world(1, 2, after=first)
    seen = json.loads(output_of('status', '--json', job.run_id))
    standby = next(w.node for w in second if w.rank == 0)
    assert {a['pid']: a['is_host'] for a in seen['agents']} == {
        cluster.agents[standby].pid: True, cluster.agents[3 - standby].pid: False}
    nodes = seen['status']['jobs'][job.run_id]['nodes']
    assert sorted((n['is_host'], n['is_standby']) for n in nodes) == [(False, True), (True, False)]
    cluster.finish(*cluster.agents[1:])
