"""A job whose members know each other by certificates (--tls-cert, --tls-key, --tls-ca)."""

import pytest

from nodes import Job, cluster  # noqa: F401
from tls_peers import Authority, OpenSslClient, write_secret


@pytest.fixture
def authority(cluster):
    return Authority(cluster.tmp / 'ca')


def test_members_of_one_ca_form_a_job(cluster, authority):
    job = Job(cluster, 2)
    job.host(0, *authority.member('one'))
    job.agent(1, *authority.member('two'))
    cluster.world(0, 1)
    cluster.finish()


def refused(cluster, authority, other, here, there):
    """An agent with the options `other` does not join, and both sides report the reason."""
    job = Job(cluster, '1:2', last_call_timeout=3)
    host = job.host(0, *authority.member('one'))
    agent = job.agent(1, *other, conf={'join_timeout': 3, 'is_host': 0})
    agent.ends(1).prints(here)
    host.prints(there)
    cluster.world(0)
    cluster.finish(host)


@pytest.mark.parametrize('times, there', [
    ({'ends': '20210101000000Z'}, 'certificate has expired'),
    ({'begins': '20900101000000Z'}, 'certificate is not yet valid'),
])
def test_certificates_out_of_their_time_are_refused(cluster, authority, times, there):
    other = authority.member('late', **times)
    refused(cluster, authority, other, 'no TLS', there)


def test_coordinator_with_an_expired_certificate_is_refused(cluster, authority):
    job = Job(cluster, '1:2', last_call_timeout=3)
    job.host(0, *authority.member('late', ends='20210101000000Z'),
             conf={'join_timeout': 4}).prints('certificate has expired')
    agent = job.agent(1, *authority.member('one'), conf={'join_timeout': 3, 'is_host': 0})
    agent.ends(1).prints("certificate has expired by this machine's clock")
    cluster.agents[0].ends(1)


def test_another_ca_is_refused(cluster, authority):
    other = Authority(cluster.tmp / 'other').member('foreign')
    refused(cluster, authority, other, 'its certificate is not trusted',
            'refused the TLS connection')


def test_secret_and_certificates_do_not_mix(cluster, authority):
    secret = [f'--secret-file={write_secret(cluster.tmp / "secret")}']
    refused(cluster, authority, secret, 'no TLS', 'refused the TLS connection')


def test_client_without_a_certificate_is_refused(cluster, authority):
    job = Job(cluster, 2)
    job.serve(*authority.member('one'))
    peer = OpenSslClient(job.port, '-tls1_3')
    peer.sock.sendall(b'CPRN')
    assert 'certificate required' in peer.end()
    assert job.status() == {}


def test_files_must_fit(cluster, authority):
    one, two = authority.member('one'), authority.member('two')
    agent = Job(cluster, 2).agent(0, one[0], two[1], one[2]).ends(1)
    assert '--tls-key=' in agent.err()
