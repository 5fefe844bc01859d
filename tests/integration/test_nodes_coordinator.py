"""The coordinator's process is killed and started again at the same address, without memory.

It continues from the agents' reports (R13 of docs/protocol.md). Leases are long where workers must
survive, and short where a node does not return.
"""

import os
import signal
import subprocess

from launches import read_bytes
from nodes import BIN, Job, cluster, pids_with, wait_for  # noqa: F401
from nodes_wire import FakeAgent

LONG = 3000.0
SHORT = 2.0


def kill(server):
    server.send_signal(signal.SIGKILL)
    server.wait()


def test_workers_survive_a_server_restart(cluster):
    job = Job(cluster, 2, lease=LONG)
    server = job.serve()
    job.agents(0, 1, nproc=2)
    world = cluster.world(0, 1)
    for _ in range(2):
        kill(server)
        server = job.serve()
        wait_for(lambda: job.status().get('phase') == 'running', job.status)
    assert job.status()['round'] == world.round
    assert all(w.alive() for w in world), 'the same workers continue'
    cluster.finish()
    assert len(cluster.worlds()) == 1


def test_used_restarts_outlive_the_server(cluster):
    job = Job(cluster, 2, lease=LONG, restarts=1)
    server = job.serve()
    job.agents(0, 1)
    first = cluster.world(0, 1)
    cluster.exit_workers(3, first[0])
    second = cluster.world(0, 1, after=first)
    assert second.restarts == [1]
    kill(server)
    job.serve()
    wait_for(lambda: job.status().get('phase') == 'running', job.status)
    assert job.status()['restarts_used'] == 1
    cluster.exit_workers(4, second[1])
    [agent.ends(1) for agent in cluster.agents]
    assert '1 of 1 used' in cluster.agents[0].err()


def test_failure_without_a_server_is_reported_and_charged(cluster):
    job = Job(cluster, 2, lease=LONG, restarts=2)
    server = job.serve()
    job.agents(0, 1)
    first = cluster.world(0, 1)
    kill(server)
    cluster.exit_workers(3, first[0])
    wait_for(lambda: not first[0].alive(), 'the end of a worker')
    job.serve()
    second = cluster.world(0, 1, after=first, seconds=30)
    assert second.restarts == [1]
    cluster.finish()


def test_agent_that_died_meanwhile_delays_for_one_lease(cluster):
    job = Job(cluster, '1:2', lease=SHORT)
    server = job.serve()
    job.agents(0, 1)
    first = cluster.world(0, 1)
    kill(server)
    cluster.agents[1].send(signal.SIGKILL)
    job.serve()
    second = cluster.world(0, after=first, seconds=30)
    assert second.restarts == [0]
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)


def test_stacks_that_arrive_after_their_agent_left(cluster):
    """The process stays to lead another job; requests to its agent are dropped."""
    spy = cluster.tmp / 'bin' / 'py-spy'
    spy.parent.mkdir()
    spy.write_text('#!/bin/sh\n: > "$NODES_DIR/spy-$NODES_NODE"\nsleep 3\n')
    spy.chmod(0o755)
    job = Job(cluster, 1)
    host = job.host(0, PATH=f'{spy.parent}:{os.environ["PATH"]}', MALLOC_PERTURB_='165')
    worker, = cluster.world(0)
    patient = {'heartbeat_ns': 60 * 10**9, 'node_lease_ns': 600 * 10**9}  # it sends no heartbeats
    another = FakeAgent(job.port, 'another').register(nodes=(1, 1), job_spec=patient)
    another.receives('rank_assignment')
    asks = subprocess.Popen([str(BIN / 'cpprunctl'), 'stacks', job.run_id], env=cluster.env(),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((cluster.folder / 'spy-0').exists, 'the look to begin')
    cluster.exit_workers(0)
    wait_for(lambda: not worker.alive(), host.describe)
    asks.wait(30)
    wait_for(lambda: not spies(cluster), 'the look to end')
    assert host.running(), host.describe()
    another.send('leave', why='a test is over')
    another.sock.close()
    assert host.popen.wait(20) >= 0, host.describe()


def spies(cluster):
    return [pid for pid in pids_with(cluster.tag.encode())
            if b'py-spy' in read_bytes(f'/proc/{pid}/cmdline')]
