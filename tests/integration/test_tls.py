"""Jobs whose nodes share a secret: agents and coordinator use TLS 1.3 alone
(docs/explanation/security.md)."""

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

import cpprunctl
from http_client import page
from nodes import Job, cluster, wait_for  # noqa: F401
from nodes_etcd import EtcdJob, make_etcd  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401
from nodes_wire import PROTOCOL, FakeAgent, node_id_of
from tls_peers import (
    SECRET,
    Listener,
    OpenSslClient,
    Relay,
    Sniffer,
    dumpable_memory,
    environ_of,
    identity_of,
    openssl,
    psk_of,
    without_libssl,
    write_secret,
)

TOKEN = 'a token of sixteen or more'


@pytest.fixture
def secret(cluster):
    """The option that names a good secret."""
    return f'--secret-file={write_secret(cluster.tmp / "secret")}'


def hello_of(run_id):
    key = 'key of a fake'
    return {'protocol': PROTOCOL, 'version': '0.0', 'run_id': run_id, 'connection': 1,
            'token': key, 'node': {'name': 'fake', 'incarnation': node_id_of(key)}}


# ---------------------------------------------------------------- jobs with a secret


def test_job_with_a_secret_sends_nothing_plain(cluster, secret, net):  # noqa: F811
    hosts = net(2)
    taken = Sniffer(hosts, cluster.tmp / 'taken', sys.executable)
    wait_for(lambda: b'ready' in taken.bytes(), 'the sniffer')
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    job.agent(0, secret)
    job.agent(1, secret)
    cluster.world(0, 1)
    cluster.finish()
    seen = taken.end()
    assert b'\x16\x03' in seen, 'no TLS handshake was seen'
    for word in (b'CPRN', b'\xa5hello', b'registered', b'rank_assignment', SECRET.encode()):
        assert word not in seen, word


def test_same_traffic_without_a_secret_is_plain(cluster, net):  # noqa: F811
    """The test above would see it."""
    hosts = net(2)
    taken = Sniffer(hosts, cluster.tmp / 'taken', sys.executable)
    wait_for(lambda: b'ready' in taken.bytes(), 'the sniffer')
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    job.agent(0)
    job.agent(1)
    cluster.world(0, 1)
    cluster.finish()
    seen = taken.end()
    assert b'CPRN' in seen and b'rank_assignment' in seen


def test_secret_comes_by_option_file_variable_or_variable(cluster, secret):
    job = Job(cluster, 3)
    job.host(0, secret)
    job.agent(1, CPPRUN_SECRET_FILE=secret.partition('=')[2])
    job.agent(2, CPPRUN_SECRET=SECRET)
    for worker in cluster.world(0, 1, 2):
        assert not [name for name in worker.env if name.startswith('CPPRUN_SECRET')]
        assert SECRET not in str(worker.env)
    cluster.finish()


def test_secret_is_in_no_memory_status_or_log(cluster):
    job = Job(cluster, 2)
    agents = [job.agent(node, LOGLEVEL='DEBUG', CPPRUN_SECRET=SECRET) for node in range(2)]
    cluster.world(0, 1)
    assert SECRET not in page(job.port, '/status')
    for agent in agents:
        children = subprocess.run(['pgrep', '-P', str(agent.pid)], capture_output=True, text=True)
        for pid in [agent.pid, *map(int, children.stdout.split())]:
            assert SECRET.encode() not in environ_of(pid)
            assert SECRET.encode() not in dumpable_memory(pid), f'in a core dump of {pid}'
        assert SECRET not in agent.err()
    cluster.finish()


def test_standby_takes_over_with_the_secret(cluster, secret):
    job = Job(cluster, '2:3', restarts=1)
    job.host(0, secret)
    job.agent(1, secret)
    job.agent(2, secret)
    first = cluster.world(0, 1, 2)
    cluster.agents[0].send(signal.SIGKILL)
    second = cluster.world(1, 2, after=first)
    # The endpoint is free again: a newcomer hosts there, and the leader announces itself.
    late = job.agent(3, secret)
    third = cluster.world(1, 2, 3, after=second)
    assert third.restarts == [0]
    cluster.finish(*cluster.agents[1:3], late)


def test_agent_reconnects_with_the_secret(cluster, secret):
    """The coordinator ends and begins again at its address: a new connection, a new handshake."""
    job = Job(cluster, 2, lease=6)
    server = job.serve(secret)
    job.agent(0, secret)
    job.agent(1, secret)
    world = cluster.world(0, 1)
    server.kill()
    server.wait()
    job.serve(secret)
    wait_for(lambda: job.status().get('phase') == 'running', lambda: job.status())
    assert all(worker.alive() for worker in world)
    cluster.finish()


def test_elected_coordinator_with_the_secret(cluster, secret, make_etcd):  # noqa: F811
    job = EtcdJob(cluster, make_etcd().wait(), '1:2', lease=3)
    job.agent(0, secret)
    job.agent(1, secret)
    first = cluster.world(0, 1)
    leader = job.leading_agent()
    leader.send(signal.SIGKILL)
    rest = [agent for agent in cluster.agents if agent is not leader]
    cluster.world(rest[0].node, after=first)
    cluster.finish(*rest)


# ---------------------------------------------------------------- one side has another secret


def test_another_secret_is_refused_and_reported_on_both_sides(cluster, secret):
    job = Job(cluster, '1:2', last_call_timeout=3)
    host = job.host(0, secret)
    other = job.agent(1, f'--secret-file={write_secret(cluster.tmp / "other", "x" * 32)}',
                      conf={'join_timeout': 2, 'is_host': 0})
    other.ends(1).prints('it has another secret')
    host.prints('refused the TLS connection from 127.0.0.1: it has another secret')
    cluster.world(0)
    cluster.finish(host)


def test_agent_without_the_secret_prints_what_to_do(cluster, secret):
    job = Job(cluster, '1:2', last_call_timeout=3)
    host = job.host(0, secret)
    job.agent(1, conf={'is_host': 0}).ends(1).prints('--secret-file')
    host.prints('it speaks without TLS')
    cluster.world(0)
    cluster.finish(host)


def test_agent_with_a_secret_never_falls_back(cluster, secret):
    job = Job(cluster, '1:2', last_call_timeout=3)
    host = job.host(0)
    other = job.agent(1, secret, conf={'join_timeout': 2, 'is_host': 0})
    other.ends(1).prints('it may have no secret, or be an older cpprun')
    host.prints('give all agents the same --secret-file')
    cluster.world(0)
    cluster.finish(host)


@pytest.mark.parametrize('text', [b'', b'\x20\0\0\0\x92\xa7refused', b'HTTP/1.1 200'])
def test_agent_with_a_secret_sends_other_servers_nothing_plain(cluster, secret, text):
    job = Job(cluster, 2)
    server = Listener(job.port, text)
    job.agent(0, secret, conf={'join_timeout': 2, 'is_host': 0}).ends(1).prints('no TLS')
    server.close()
    assert server.received.startswith(b'\x16\x03')
    assert b'CPRN' not in server.received and b'hello' not in server.received


def test_server_with_a_certificate_alone_is_refused(cluster, secret):
    job = Job(cluster, 2)
    key, own = cluster.tmp / 'own.key', cluster.tmp / 'own.pem'
    openssl('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-subj', '/CN=127.0.0.1', '-days',
            '10', '-keyout', key, '-out', own)
    server = subprocess.Popen(
        ['openssl', 's_server', '-accept', f'127.0.0.1:{job.port}', '-cert', own, '-key', key,
         '-tls1_3', '-quiet'], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    cluster.servers.append(server)
    wait_for(job.is_open, 'openssl s_server')
    agent = job.agent(0, secret, conf={'join_timeout': 2, 'is_host': 0}).ends(1)
    agent.prints('its certificate is not trusted')
    server.kill()
    assert server.stdout.read() == b'', 'the agent spoke to it'


# ---------------------------------------------------------------- foreign clients at a coordinator


def test_openssl_with_the_derived_key_is_a_member(cluster, secret):
    """The key is that of docs/protocol.md, also for another implementation of TLS."""
    job = Job(cluster, 2)
    job.serve(secret)
    peer = OpenSslClient.with_psk(job.port, psk_of(SECRET, 'coordinator', job.run_id),
                                  identity_of('coordinator', job.run_id))
    peer.send_hello({**hello_of(job.run_id), 'protocol': 999})
    assert 'protocol' in peer.receives('refused')['why']
    peer.end()


@pytest.mark.parametrize('why', ['identity', 'role', 'key', 'no key', 'TLS 1.2'])
def test_foreign_clients_are_refused(cluster, secret, why):
    job = Job(cluster, 2)
    job.serve(secret)
    key = psk_of(SECRET, 'coordinator', job.run_id)
    identity = identity_of('coordinator', job.run_id)
    if why == 'identity':
        peer = OpenSslClient.with_psk(job.port, key, 'Client_identity')
    elif why == 'role':
        peer = OpenSslClient.with_psk(job.port, psk_of(SECRET, 'agent', job.run_id),
                                      identity_of('agent', job.run_id))
    elif why == 'key':
        peer = OpenSslClient.with_psk(job.port, '00' * 32, identity)
    else:
        peer = OpenSslClient(job.port, '-tls1_2' if why == 'TLS 1.2' else '-tls1_3')
    assert 'alert' in peer.end()
    assert job.status() == {}


def test_plain_client_gets_a_reason_and_nothing_else(cluster, secret):
    job = Job(cluster, 2)
    job.serve(secret)
    plain = FakeAgent(job.port, job.run_id)
    assert 'TLS alone' in plain.receives('refused')['why']
    assert plain.is_closed()
    assert job.status() == {}


def test_replayed_connection_changes_nothing(cluster, secret):
    job = Job(cluster, 2)
    job.serve(secret)
    relay = Relay(job.port)
    agent = job.agent(0, secret, f'--rdzv-endpoint=127.0.0.1:{relay.port}')
    job.wait_members(1)
    agent.send(signal.SIGTERM)
    agent.ends(lambda code: code != 0)
    wait_for(lambda: not job.status(), 'the job is forgotten')
    with socket.create_connection(('127.0.0.1', job.port), 100) as replay:
        replay.settimeout(100)
        replay.sendall(relay.sent)
        replay.shutdown(socket.SHUT_WR)
        while replay.recv(65536):
            pass
    assert job.status() == {}
    relay.close()


def test_half_a_handshake_is_given_up(cluster, secret):
    job = Job(cluster, 2)
    job.serve(secret)
    with socket.create_connection(('127.0.0.1', job.port), 100) as peer:
        peer.settimeout(100)
        peer.sendall(b'\x16\x03\x01\x02\x00\x01\x00\x01')
        assert peer.recv(1) == b''


def test_stores_and_http_stay_plain(cluster, secret):
    job = Job(cluster, 2)
    job.serve(secret)
    with socket.create_connection(('127.0.0.1', job.port), 100) as store:
        store.sendall(b'\0\xce\xf7\x85\x3c' + b'\x0d' + b'\1\2\3\4')  # VALIDATE, PING
        assert store.recv(4) == b'\1\2\3\4'
    assert json.loads(page(job.port, '/status'))['jobs'] == {}


# ---------------------------------------------------------------- cpprunctl


def ctl(cluster, *args, **env):
    return cpprunctl.ctl(*args, env=cluster.env(**env))


def test_operators_need_the_secret_too(cluster, secret):
    job = Job(cluster, 2)
    job.host(0, secret, CPPRUN_ADMIN_TOKEN=TOKEN)
    job.agent(1, secret, CPPRUN_ADMIN_TOKEN=TOKEN)
    first = cluster.world(0, 1)
    command = ['restart', f'--endpoint=127.0.0.1:{job.port}']
    plain = ctl(cluster, *command, CPPRUN_ADMIN_TOKEN=TOKEN)
    assert plain.returncode == 1 and '--secret-file' in plain.stderr
    wrong = ctl(cluster, *command, CPPRUN_ADMIN_TOKEN=TOKEN, CPPRUN_SECRET='x' * 32)
    assert wrong.returncode == 1 and 'another secret' in wrong.stderr
    good = ctl(cluster, *command, secret, CPPRUN_ADMIN_TOKEN=TOKEN)
    assert good.returncode == 0, good.stderr
    cluster.world(0, 1, after=first)
    cluster.finish()


def test_operator_with_a_secret_gets_an_error_from_a_job_without(cluster):
    job = Job(cluster, 1)
    job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    cluster.world(0)
    done = ctl(cluster, 'stop', f'--endpoint=127.0.0.1:{job.port}', CPPRUN_ADMIN_TOKEN=TOKEN,
               CPPRUN_SECRET=SECRET)
    assert done.returncode == 1 and 'it may have no secret' in done.stderr
    cluster.finish()


# ---------------------------------------------------------------- what is refused at the start


@pytest.mark.parametrize('text, mode, why', [
    ('short', 0o600, 'has 5 bytes'),
    (SECRET, 0o644, 'chmod 600'),
    ('x' * 2000, 0o600, 'longer than 1024'),
])
def test_bad_secret_files_are_refused(cluster, text, mode, why):
    path = write_secret(cluster.tmp / 'bad', text, mode)
    agent = Job(cluster, 2).agent(0, f'--secret-file={path}').ends(1)
    assert why in agent.err() and text not in agent.err()


def test_short_variable_is_refused(cluster):
    agent = Job(cluster, 2).agent(0, CPPRUN_SECRET='short').ends(1)
    assert 'CPPRUN_SECRET has 5 bytes' in agent.err()


def test_without_openssl_there_is_no_plain_connection(cluster, secret):
    job = Job(cluster, 2)
    server = Listener(job.port)
    agent = job.agent(0, secret, **without_libssl(cluster.tmp / 'none')).ends(1)
    assert 'libssl3' in agent.err()
    server.close()
    assert server.received == b''


def test_one_node_needs_no_openssl(cluster, secret):
    job = Job(cluster, 1)
    job.agent(0, secret, **without_libssl(cluster.tmp / 'none'))
    cluster.world(0)
    maps = f'/proc/{cluster.agents[0].pid}/maps'
    assert os.path.exists(maps) and 'libssl' not in open(maps).read()
    cluster.finish()
