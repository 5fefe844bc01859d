"""--snapshot-dir with real agents: the snapshot of each round, fetches between nodes, stopping on
request with several nodes."""

import os
import signal
import socket

import pytest
from nodes import Job, cluster, wait_for  # noqa: F401  (a fixture)
from nodes_net import namespaces, net  # noqa: F401
from nodes_wire import FakeAgent
from snapshot_folders import contents, id_of, make_snapshot

RESUME = 'CPPRUN_RESUME_FROM'
BIG = {'model.pt': os.urandom(6_000_000), 'optim.pt': os.urandom(100_000), 'rank-0.pt': b''}


class Folders:
    """A snapshot folder for each node."""

    def __init__(self, root):
        self.root = root

    def __getitem__(self, node):
        return self.root / f'snapshots-{node}'

    def flag(self, node):
        return f'--snapshot-dir={self[node]}'


@pytest.fixture
def folders(tmp_path):
    return Folders(tmp_path)


def start(job, folders, *nodes):
    """The host, node 0, first."""
    return [job.host(n, folders.flag(n)) if n == 0 else job.agent(n, folders.flag(n))
            for n in nodes]


def resumed(world):
    return [worker.env.get(RESUME, '') for worker in world]


def wait_until_no_drafts(folder):
    """The agent removes what it could not fetch beside the start of the workers."""
    def drafts():
        return [p.name for p in folder.iterdir() if not p.name.startswith('step-')]

    wait_for(lambda: not drafts(), lambda: f'the end of {drafts()}')


def test_empty_folder_means_from_the_beginning(cluster, folders):
    job = Job(cluster, 1)
    agent = job.agent(0, folders.flag(0), **{RESUME: '/inherited'})
    (worker,) = cluster.world(0)
    assert RESUME not in worker.env
    assert worker.env['CPPRUN_SNAPSHOT_DIR'] == str(folders[0])
    assert not folders[0].exists(), 'the first snapshot makes it'
    cluster.exit_workers(0)
    agent.ends(0)
    assert agent.err() == ''


def test_without_the_flag_the_variables_are_unchanged(cluster):
    job = Job(cluster, 1)
    agent = job.agent(0, **{RESUME: '/inherited'})
    (worker,) = cluster.world(0)
    assert worker.env[RESUME] == '/inherited'
    assert 'CPPRUN_SNAPSHOT_DIR' not in worker.env
    cluster.exit_workers(0)
    agent.ends(0)


def test_each_round_begins_with_the_newest_complete_snapshot(cluster, folders):
    make_snapshot(folders[0], 9)
    make_snapshot(folders[0], 10)
    (make_snapshot(folders[0], 11) / 'model.pt').write_bytes(b'cut')
    (make_snapshot(folders[0], 12) / 'manifest.json').unlink()
    job = Job(cluster, 1, restarts=1)
    agent = job.agent(0, folders.flag(0), nproc=2)
    first = cluster.world(0)
    assert resumed(first) == [f'{folders[0]}/step-10'] * 2
    assert job.status()['snapshot'] == {'step': 10, 'id': id_of(10)}
    make_snapshot(folders[0], 200)
    cluster.exit_workers(1, first[0])
    second = cluster.world(0, after=first)
    assert resumed(second) == [f'{folders[0]}/step-200'] * 2
    assert job.status()['resumed_from']['step'] == 200
    cluster.exit_workers(0)
    agent.ends(0)


def test_shared_folder_needs_no_fetch(cluster, folders):
    made = make_snapshot(folders[0], 7)
    before = {p.name: p.stat().st_ino for p in made.iterdir()}
    job = Job(cluster, 2)
    agents = [job.host(0, folders.flag(0)), job.agent(1, folders.flag(0))]
    world = cluster.world(0, 1)
    assert resumed(world) == [f'{folders[0]}/step-7'] * 2
    assert {p.name: p.stat().st_ino for p in made.iterdir()} == before
    cluster.finish(*agents)


def test_node_without_the_snapshot_fetches_it(cluster, folders):
    made = make_snapshot(folders[0], 20, BIG)
    job = Job(cluster, 3)
    agents = [*start(job, folders, 0, 1), job.agent(2)]
    world = cluster.world(0, 1, 2)
    assert {w.node: w.env.get(RESUME) for w in world} == {
        0: f'{folders[0]}/step-20', 1: f'{folders[1]}/step-20', 2: None}
    assert contents(folders[1] / 'step-20') == contents(made) == BIG
    wait_until_no_drafts(folders[1])
    cluster.exit_workers(0)
    for agent in agents:
        agent.ends(0)
        assert agent.err() == '', 'a quick fetch is no news'


def test_new_node_fetches_from_the_others(cluster, folders):
    job = Job(cluster, 2)
    agents = start(job, folders, 0, 1)
    first = cluster.world(0, 1)
    assert resumed(first) == ['', '']
    make_snapshot(folders[0], 33, BIG)
    agents[1].send(signal.SIGKILL)
    agents.pop().ends(-signal.SIGKILL)
    agents.append(job.agent(2, folders.flag(2)))
    second = cluster.world(0, 2, after=first)
    assert resumed(second) == [f'{folders[n]}/step-33' for n in second.nodes]
    assert contents(folders[2] / 'step-33') == BIG
    assert second.restarts == [0]
    cluster.finish(*agents)


def test_damaged_snapshot_is_skipped(cluster, folders):
    """It costs no restart, and the message names the file and the node."""
    make_snapshot(folders[0], 30, BIG, lie='optim.pt')
    for node in (0, 1):
        make_snapshot(folders[node], 20)
    job = Job(cluster, 2)
    agents = start(job, folders, 0, 1)
    world = cluster.world(0, 1)
    assert resumed(world) == [f'{folders[n]}/step-20' for n in (0, 1)]
    assert world.restarts == [0]
    agents[1].prints('the snapshot of step 30 could not be fetched from 127.0.0.1:')
    agents[1].prints('optim.pt has another checksum there')
    agents[0].prints('optim.pt has another checksum there')
    wait_until_no_drafts(folders[1])
    cluster.finish(*agents)


def test_unwritable_fetch_fails_the_start(cluster, folders):
    make_snapshot(folders[0], 30)
    os.symlink('/proc/version', folders[1])  # no process can make a folder there
    job = Job(cluster, 2)
    agents = [job.host(0, folders.flag(0)), job.agent(1, f'--snapshot-dir={folders[1]}/below')]
    for agent in agents:
        agent.ends(1)
    assert 'the snapshot of step 30 could not be fetched from 127.0.0.1:' in agents[1].err()
    assert 'reported by' in agents[0].err() and 'step 30' in agents[0].err()
    assert not cluster.worlds()


# ---------------------------------------------------------------- a hostile source


class FakeHolder:
    """A node that announces the snapshot of step 30 and serves it: `sent`, then nothing more until
    the test ends it."""

    def __init__(self, job, sent=b''):
        self.listener = socket.create_server(('127.0.0.1', 0))
        self.listener.settimeout(20)
        snapshots = [{'step': 30, 'id': id_of(30)}]
        # It sends nothing for a while; the job's options are those of the agent that came first.
        self.agent = FakeAgent(job.port, job.run_id).register(
            nodes=(1, 2), job_spec={'node_lease_ns': 60 * 10**9, 'heartbeat_ns': 20 * 10**9},
            has_snapshot_dir=True, snapshots=snapshots,
            snapshot_port=self.listener.getsockname()[1])
        self.agent.sock.settimeout(40)
        self.world = self.agent.receives('rank_assignment')
        self.peer, _ = self.listener.accept()
        self.request = self.peer.recv(1000).decode()
        self.peer.sendall(sent)

    def close(self):
        for sock in (self.peer, self.listener, self.agent.sock):
            sock.close()


def test_workers_wait_for_the_fetch_and_a_lost_source_costs_nothing(cluster, folders):
    job = Job(cluster, '1:2', lease=60)
    agent = job.host(0, folders.flag(0))
    holder = FakeHolder(job)
    assert holder.request == (f'cpprun-snapshot-1 {holder.world["snapshot_secret"]} 30 '
                              f'{id_of(30)} manifest.json\n')
    agent.prints('fetching the snapshot of step 30 from 127.0.0.1:')  # it takes longer than 2 s
    assert not cluster.workers()
    holder.close()  # dead by evidence: the round ends, and with it the fetch
    world = cluster.world(0)
    assert resumed(world) == [''] and world.restarts == [0]
    cluster.exit_workers(0)
    agent.ends(0)
    assert not folders[0].exists() or not list(folders[0].iterdir())


def test_stalled_source_fails_the_start(cluster, folders):
    job = Job(cluster, '1:2', lease=60)
    agent = job.host(0, folders.flag(0))
    holder = FakeHolder(job, b'bytes 400\n{"format": 1')
    assert 'nothing came for 10 s' in holder.agent.receives('stop')['why']
    holder.agent.send('stopped', round=1, reserved_port=9)
    assert not holder.agent.receives('job_result')['is_success']
    holder.agent.send('ack', is_success=False)
    holder.close()
    agent.ends(1)
    assert 'the snapshot of step 30 could not be fetched' in agent.err()
    assert not cluster.workers() and not list(folders[0].glob('*'))


def test_corrupt_source_is_skipped(cluster, folders):
    job = Job(cluster, '1:2', lease=60)
    agent = job.host(0, folders.flag(0))
    holder = FakeHolder(job, b'bytes 7\nno JSON')
    holder.agent.receives('stop')
    holder.agent.send('stopped', round=1, reserved_port=9,
                      snapshots=[{'step': 30, 'id': id_of(30)}])
    assert holder.agent.receives('rank_assignment')['resume'] is None
    world = wait_for(lambda: [w for w in cluster.workers() if w.round == 2], 'a worker')
    assert RESUME not in world[0].env
    holder.agent.send('leave', why='a test is over')
    holder.close()
    cluster.world(0)
    cluster.exit_workers(0)
    agent.ends(0)


@pytest.mark.parametrize('kind', ['v4', 'v6', 'two'])
def test_fetch_over_a_network(cluster, folders, net, kind):
    hosts = net(3, kind)
    make_snapshot(folders[0], 20, BIG)
    make_snapshot(folders[1], 10)
    job = Job(cluster, 3, host=hosts.addr(0), net=hosts)
    agents = [job.agent(n, folders.flag(n)) for n in (0, 1, 2)]
    world = cluster.world(0, 1, 2)
    assert resumed(world) == [f'{folders[w.node]}/step-20' for w in world]
    for node in (1, 2):
        assert contents(folders[node] / 'step-20') == BIG
    cluster.finish(*agents)


# ---------------------------------------------------------------- stopping on request

SAVES = {'NODES_SAVES': '1'}


def test_others_continue_without_the_stopped_node(cluster, folders):
    job = Job(cluster, '1:2')
    agents = [job.host(0, folders.flag(0), **SAVES), job.agent(1, folders.flag(0), **SAVES)]
    first = cluster.world(0, 1)
    make_snapshot(folders[0], 50)
    agents[1].send(signal.SIGTERM)
    agents[1].ends(75)
    assert 'stopped on request at step 50; the same command continues' in agents[1].err()
    second = cluster.world(0, after=first)
    assert resumed(second) == [f'{folders[0]}/step-50']
    assert second.restarts == [0]
    cluster.exit_workers(0)
    agents[0].ends(0)
    lines = agents[0].err().splitlines()
    assert len(lines) == 1 and 'was asked to stop' in lines[0], lines


def test_with_too_few_nodes_the_job_ends_resumable(cluster, folders):
    job = Job(cluster, 2)
    agents = [job.host(0, folders.flag(0), **SAVES), job.agent(1, folders.flag(0), **SAVES)]
    cluster.world(0, 1)
    make_snapshot(folders[0], 50)
    agents[1].send(signal.SIGTERM)
    for agent in agents:
        agent.ends(75)
        assert 'at step 50; the same command continues from it' in agent.err()
    assert 'was asked to stop) at step 50' in agents[0].err()


def test_host_leaves_the_job_to_its_standby(cluster):
    job = Job(cluster, '1:2')
    agents = [job.host(0, **SAVES), job.agent(1, **SAVES)]
    first = cluster.world(0, 1)
    agents[0].send(signal.SIGTERM)
    agents[0].ends(75)
    second = cluster.world(1, after=first)
    assert second.restarts == [0]
    cluster.exit_workers(0)
    agents[1].ends(0)


def test_host_ends_all_nodes_when_the_standby_is_too_few(cluster):
    job = Job(cluster, 2)
    agents = [job.host(0, **SAVES), job.agent(1, **SAVES)]
    cluster.world(0, 1)
    agents[0].send(signal.SIGTERM)
    for agent in agents:
        agent.ends(75)


def test_host_that_stays_for_its_standby_is_asked_again(cluster):
    job = Job(cluster, '1:2')
    agents = [job.host(0, **SAVES), job.agent(1, NODES_STUBBORN='1')]
    first = cluster.world(0, 1)
    agents[0].send(signal.SIGTERM)
    agents[0].prints('other agents still need the rendezvous')
    agents[0].send(signal.SIGTERM)
    cluster.exit_workers(75, first.of(1)[0])
    agents[0].ends(75)
    cluster.world(1, after=first)
    cluster.exit_workers(0)
    agents[1].ends(0)


def test_all_nodes_are_asked_together(cluster):
    job = Job(cluster, '1:3')
    agents = [job.host(0, **SAVES), job.agent(1, **SAVES), job.agent(2, **SAVES)]
    cluster.world(0, 1, 2)
    for agent in agents:
        agent.send(signal.SIGTERM)
    for agent in agents:
        agent.ends(75)
    assert len(cluster.worlds()) == 1


def test_status_shows_draining_nodes(cluster):
    job = Job(cluster, '1:2')
    agents = [job.host(0, **SAVES), job.agent(1, NODES_STUBBORN='1')]
    first = cluster.world(0, 1)
    agents[1].send(signal.SIGTERM)
    wait_for(lambda: 'draining' in [n['state'] for n in job.status()['nodes']], job.status)
    cluster.exit_workers(75, 'node-1')
    agents[1].ends(75)
    cluster.world(0, after=first)
    cluster.exit_workers(0)
    agents[0].ends(0)
