"""Foreign clients at the rendezvous port before a job begins: they redirect no agent, end no job,
and a foreign page reads nothing."""

import http.client
import socket

import pytest

from nodes import Job, cluster  # noqa: F401
from nodes_wire import FakeAgent, node_id_of

ELSEWHERE = {'term': 2**50, 'address': '127.0.0.1', 'port': 9}
OUTCOME = {'is_success': True, 'failure_summary': ''}


def both_run(cluster, job):
    """Two agents form their round and succeed, whatever other clients have sent before."""
    for _ in range(2):
        job.agent(len(cluster.agents))
    world = cluster.world(0, 1)
    assert all(worker.alive() for worker in world)
    cluster.finish()


def announces(job, **more):
    foreign = FakeAgent(job.port, job.run_id, 'key of another')
    foreign.send('announce_leader', **{**ELSEWHERE, **more})
    return foreign


@pytest.mark.parametrize('mac', ['', '0' * 64])
def test_foreign_client_announces_no_leader_before_the_job_begins(cluster, mac):
    job = Job(cluster, 2)
    job.serve()
    foreign = announces(job, mac=mac)
    assert 'no node of job' in foreign.receives('refused')['why']
    assert foreign.is_closed()
    both_run(cluster, job)


def test_foreign_client_reports_no_outcome(cluster):
    job = Job(cluster, 2, lease=2)
    job.serve()
    spare = FakeAgent(job.port, job.run_id, 'key of a spare')
    spare.register(job_result=OUTCOME)
    assert 'make no sense' in spare.receives('refused')['why']
    member = FakeAgent(job.port, job.run_id, 'key of a member')
    round_of_its_own = {'term': 7, 'round': 3, 'group_size': 2, 'world_size': 2, 'job_key': 'x'}
    member.register(term=7, round=3, reported_phase=3, job_result=OUTCOME,
                    assignment=round_of_its_own)
    both_run(cluster, job)
    assert member.is_closed()


def test_nodes_that_fall_silent_do_not_fill_the_log(cluster):
    """Each registers under a name of its own, and sends nothing more."""
    job = Job(cluster, 200)
    with open(cluster.tmp / 'log', 'wb') as log:
        job.serve(stderr=log)
    lease = {'node_lease_ns': 10**9, 'heartbeat_ns': 3 * 10**8}
    silent = []
    for number in range(100):
        key = f'key {number}'
        node = {'name': f'silent-{number}', 'incarnation': node_id_of(key)}
        silent.append(FakeAgent(job.port, job.run_id, key, node=node))
        silent[-1].register((200, 200), job_spec=lease)
    for one in silent:
        assert one.is_closed(), 'its lease has ended'
    log = (cluster.tmp / 'log').read_text()
    assert 1 <= log.count('nothing was heard from silent-') <= 64, log


# ---------------------------------------------------------------- HTTP


def status_by(port, *hosts):
    """The code of /status, asked with these Host headers, and the body."""
    with socket.create_connection(('127.0.0.1', port), 10) as peer:
        lines = ''.join(f'Host: {host}\r\n' for host in hosts)
        peer.sendall(f'GET /status HTTP/1.1\r\n{lines}\r\n'.encode())
        answer = http.client.HTTPResponse(peer)
        answer.begin()
        return answer.status, answer.read().decode()


def test_foreign_host_names_are_refused(cluster):
    job = Job(cluster, 1)
    job.serve()
    rebound = f'{socket.gethostname()}.evil.example'
    for host in ('evil.example', f'evil.example:{job.port}', rebound):
        code, text = status_by(job.port, host)
        assert code == 421 and '--allowed-host' in text and 'jobs' not in text
    own = ('127.0.0.1', f'127.0.0.1:{job.port}', '10.9.8.7', f'[::1]:{job.port}', 'localhost',
           socket.gethostname())
    for host in own:
        assert status_by(job.port, host)[0] == 200
    assert status_by(job.port)[0] == 200


def test_users_name_further_hosts(cluster):
    job = Job(cluster, 1)
    job.host(0, '--allowed-host=train.example, dash.example')
    cluster.world(0)
    for host in ('train.example', 'dash.example:80', 'DASH.example.'):
        assert status_by(job.port, host)[0] == 200
    assert status_by(job.port, 'other.example')[0] == 421
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)
