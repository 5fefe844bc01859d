"""Jobs whose coordinator is elected in etcd (R18): whichever node dies, freezes or is cut off, the
others continue. docs/how-to/etcd.md lists the guarantees; workers record whether they saw another
round.
"""

import os
import shutil
import signal

import pytest

from nodes import cluster, wait_for  # noqa: F401
from nodes_etcd import EtcdJob, make_certificates, make_etcd  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401
from process_info import reaper_of

LEASE = 3.0  # whole seconds, as in etcd


def three(cluster, etcd, nnodes='2:3', **how):  # noqa: F811
    """Three nodes in one round, and the agent that leads it."""
    job = EtcdJob(cluster, etcd, nnodes, lease=LEASE, **how)
    job.agents(0, 1, 2)
    first = cluster.world(0, 1, 2)
    return job, first, job.leading_agent()


def others(cluster, agent):  # noqa: F811
    return [a for a in cluster.agents if a is not agent and a.running()]


def replaced(cluster, leader, first):  # noqa: F811
    """The round of the other nodes."""
    return cluster.world(*(a.node for a in others(cluster, leader)), after=first)


def test_nodes_meet_without_a_host_and_leave_no_leader_key(cluster, make_etcd):
    job, _, leader = three(cluster, make_etcd().wait())
    assert job.leader()[0] == '127.0.0.1'
    cluster.finish()
    assert job.leader() is None
    assert 'cpprun:' not in leader.err(), 'a good run prints nothing of its own'


def test_others_continue_when_the_leading_agent_is_killed(cluster, make_etcd):
    job, first, leader = three(cluster, make_etcd().wait(), restarts=2)
    cluster.exit_workers(3, first[0])
    second = cluster.world(0, 1, 2, after=first)
    leader.send(signal.SIGKILL)
    left = others(cluster, leader)
    third = cluster.world(*(a.node for a in left), after=second)
    assert third.restarts == [1], 'a lost node costs no restart, and what was used stays used'
    cluster.exit_workers(3, third[0])
    fourth = cluster.world(*(a.node for a in left), after=third)
    assert fourth.restarts == [2]
    cluster.finish(*left)


def test_job_outlives_all_its_leaders_but_one(cluster, make_etcd):
    job, world, leader = three(cluster, make_etcd().wait(), '1:3')
    for _ in range(2):
        leader.send(signal.SIGKILL)
        left = others(cluster, leader)
        world = cluster.world(*(a.node for a in left), after=world)
        leader = job.leading_agent()
    cluster.finish(leader)


def test_frozen_leading_agent_loses_its_workers_and_returns(cluster, make_etcd):
    job, first, leader = three(cluster, make_etcd().wait())
    leader.send(signal.SIGSTOP)
    second = replaced(cluster, leader, first)
    assert job.leading_agent() is not leader
    leader.send(signal.SIGCONT)
    cluster.world(0, 1, 2, after=second)
    leader.prints('leads the job no more')
    cluster.finish()


def test_silent_leading_node_is_replaced(cluster, make_etcd):
    """As after a power cut: none of its processes runs, and no connection ends."""
    _, first, leader = three(cluster, make_etcd().wait())
    reaper = reaper_of(leader.pid)
    for pid in (leader.pid, reaper):
        os.kill(pid, signal.SIGSTOP)
    for worker in first.of(leader.node):
        os.kill(worker.pid, signal.SIGKILL)
    replaced(cluster, leader, first)
    cluster.finish(*others(cluster, leader))
    leader.send(signal.SIGKILL)
    leader.popen.wait(50)
    os.kill(reaper, signal.SIGCONT)


def test_unplugged_host_is_replaced(cluster, make_etcd, net):
    hosts = net(4)
    etcd = make_etcd(place=lambda i: (hosts.addr(3), hosts.wrap(3))).wait()
    job, first, leader = three(cluster, etcd, net=hosts)
    hosts.cable(leader.node, False)
    second = replaced(cluster, leader, first)
    wait_for(lambda: not any(w.alive() for w in first), 'the old world to be gone', LEASE)
    hosts.cable(leader.node, True)
    third = cluster.world(0, 1, 2, after=second, seconds=30)
    assert third.restarts == [0]
    assert job.leader()[0] == hosts.addr(job.leading_agent().node)
    cluster.finish()


def test_short_restart_of_etcd_has_no_effect(cluster, make_etcd):
    etcd = make_etcd().wait()
    job = EtcdJob(cluster, etcd, 2, lease=12)
    job.agents(0, 1)
    first = cluster.world(0, 1)
    leader = job.leading_agent()
    revision = etcd.created(job.leader_key)
    etcd.kill(0)
    etcd.start(0)
    etcd.wait()
    lease = etcd.lease(job.leader_key)
    wait_for(lambda: etcd.time_to_live(lease) >= 11, 'a sign of life after the restart', 12)
    assert etcd.created(job.leader_key) == revision and job.leading_agent() is leader
    assert all(w.alive() for w in first)
    cluster.finish()


def test_job_stops_without_etcd_and_continues_when_it_is_back(cluster, make_etcd):
    etcd = make_etcd().wait()
    _, first, _ = three(cluster, etcd)
    etcd.kill(0)
    wait_for(lambda: not any(w.alive() for w in first), 'the workers to stop', 3 * LEASE)
    assert all(a.running() for a in cluster.agents)
    etcd.start(0)
    second = cluster.world(0, 1, 2, after=first, seconds=30)
    assert second.restarts == [0]
    cluster.finish()


@pytest.mark.parametrize('killed', [0, 1, 2])
def test_one_of_three_members_of_etcd_may_die(cluster, make_etcd, killed):
    etcd = make_etcd(3).wait()
    job = EtcdJob(cluster, etcd, 2, lease=6)
    job.agents(0, 1)
    first = cluster.world(0, 1)
    alive = (killed + 1) % 3
    etcd.kill(killed)
    lease = wait_for(lambda: etcd.lease(job.leader_key, alive), etcd.describe)
    wait_for(lambda: etcd.time_to_live(lease, alive) >= 5, 'a sign of life after the loss', 6)
    assert all(w.alive() for w in first)
    cluster.finish()


def test_node_without_etcd_reports_the_reason(cluster, make_etcd):
    etcd = make_etcd().wait()
    etcd.kill(0)
    job = EtcdJob(cluster, etcd, 1, join_timeout=3)
    job.agent(0).ends(1)
    output = cluster.agents[0].err()
    assert 'timed out after 3 s' in output and f'etcd: {etcd.endpoint}' in output
    assert 'Connection refused' in output


# ---------------------------------------------------------------- users

PASSWORD = 'a word that nobody guesses'


def with_users(etcd):
    """Etcd accepts only root from now on. Returns a client with root's credentials."""
    for path, body in (('user/add', {'name': 'root', 'password': PASSWORD}),
                       ('user/grant', {'user': 'root', 'role': 'root'}), ('enable', {})):
        assert etcd.ask(f'auth/{path}', body) is not None, etcd.describe()


def test_user_logs_in_again_when_etcd_has_forgotten(cluster, make_etcd):
    etcd = make_etcd().wait()
    with_users(etcd)
    job = EtcdJob(cluster, etcd, 2, lease=12, user='root')
    job.agents(0, 1, CPPRUN_ETCD_PASSWORD=PASSWORD)
    first = cluster.world(0, 1)
    assert all('CPPRUN_ETCD_PASSWORD' not in w.env for w in first), 'no business of workers'
    etcd.kill(0)
    etcd.start(0)
    etcd.token = wait_for(lambda: (etcd.ask('auth/authenticate', {
        'name': 'root', 'password': PASSWORD}) or {}).get('token'), etcd.describe, 30)
    lease = etcd.lease(job.leader_key)
    wait_for(lambda: etcd.time_to_live(lease) >= 11, 'a sign of life by a new token', 12)
    assert all(w.alive() for w in first)
    cluster.finish()
    assert all(PASSWORD not in a.err() for a in cluster.agents)


@pytest.mark.parametrize('password, why', [
    ('wrong', "does not take the user 'root'"), (None, 'user name is empty')])
def test_wrong_user_is_reported(cluster, make_etcd, password, why):
    etcd = make_etcd().wait()
    with_users(etcd)
    more = {'user': 'root'} if password else {}
    job = EtcdJob(cluster, etcd, 1, join_timeout=3, **more)
    env = {'CPPRUN_ETCD_PASSWORD': password} if password else {}
    job.agent(0, **env).ends(1)
    assert why in cluster.agents[0].err()


# ---------------------------------------------------------------- TLS


@pytest.fixture
def tls_etcd(cluster, make_etcd):  # noqa: F811
    """Etcd with a certificate that also requires one; and the folder with both."""
    folder = cluster.tmp
    if shutil.which('openssl') is None:
        pytest.skip('no openssl to make certificates with')
    make_certificates(folder)
    etcd = make_etcd(scheme='https', more=(
        '--cert-file', folder / 'me.pem', '--key-file', folder / 'me.key',
        '--trusted-ca-file', folder / 'ca.pem', '--client-cert-auth'))
    etcd.certificate = folder / 'me.pem', folder / 'me.key'
    return etcd.wait(), folder


def test_etcd_over_tls_with_client_certificates(cluster, tls_etcd):
    etcd, folder = tls_etcd
    job = EtcdJob(cluster, etcd, 2, protocol='https', cacert=folder / 'ca.pem',
                  cert=folder / 'me.pem', key=folder / 'me.key')
    job.agents(0, 1)
    cluster.world(0, 1)
    cluster.finish()
    assert not job.leader()


@pytest.mark.parametrize('conf, why', [
    ({'protocol': 'https'}, 'its certificate is not trusted'),
    ({'protocol': 'https', 'cacert': 'ca.pem'}, 'certificate'),
    ({}, 'protocol=https'),
])
def test_tls_identities_are_reported(cluster, tls_etcd, conf, why):
    etcd, folder = tls_etcd
    conf = {k: folder / v if k == 'cacert' else v for k, v in conf.items()}
    EtcdJob(cluster, etcd, 1, join_timeout=3, **conf).agent(0).ends(1)
    assert why in cluster.agents[0].err()


def test_foreign_key_is_rejected_immediately(cluster, tls_etcd):
    etcd, folder = tls_etcd
    job = EtcdJob(cluster, etcd, 1, protocol='https', cacert=folder / 'ca.pem',
                  cert=folder / 'me.pem', key=folder / 'ca.key')
    job.agent(0).ends(1)
    assert '--rdzv-conf key=' in cluster.agents[0].err()
