"""The notice of a failed job: POSTed once, by one agent, over HTTP and HTTPS, with few retries."""

import json
import ssl

import pytest

from http_server import Handler, serving
from nodes import free_port
from tls_peers import Listener, openssl


class Hook(Handler):
    def do_POST(self):
        size = int(self.headers['Content-Length'])
        body = json.loads(self.rfile.read(size))
        self.server.got.append((self.path, dict(self.headers), body))
        answer = self.server.answers.pop(0) if self.server.answers else 200
        self.send_response(answer)
        self.end_headers()


@pytest.fixture
def hook():
    with serving(Hook) as server:
        server.got, server.answers = [], []
        server.url += '/services/T0/s3cret'
        yield server


def fails(jobs, *flags, env=None):
    code = "import sys; print('bad batch', file=sys.stderr); sys.exit(3)"
    job = jobs.cpprun(
        *('--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0', '--rdzv-id=noticed'),
        *('--nproc-per-node=2', *flags),
        *jobs.py(code),
        env=env,
    )
    assert job.done() == 1
    return job


def test_failure_summary_is_posted_once(jobs, hook):
    job = fails(jobs, env={'CPPRUN_NOTIFY_URL': hook.url})
    ((path, headers, body),) = hook.got
    assert path == '/services/T0/s3cret' and headers['Content-Type'] == 'application/json'
    assert body['event'] == 'failure_summary' and body['run_id'] == 'noticed'
    assert body['exit_code'] == 3 and 'failed on rank' in body['text']
    assert 's3cret' not in job.err


def test_the_url_may_stand_in_a_file_and_workers_do_not_get_it(jobs, hook, tmp_path):
    (tmp_path / 'url').write_text(hook.url + '\n')
    code = "import os, sys; sys.exit(3 if 'CPPRUN_NOTIFY_URL' not in os.environ else 4)"
    job = jobs.cpprun(
        *('--standalone', f'--notify-url-file={tmp_path}/url'),
        *jobs.py(code),
        env={'CPPRUN_NOTIFY_URL': 'http://127.0.0.1:9/'},
    )
    assert job.done() == 1
    assert [body['exit_code'] for _, _, body in hook.got] == [3]


def test_a_success_posts_nothing(jobs, hook):
    env = {'CPPRUN_NOTIFY_URL': hook.url}
    assert jobs.cpprun('--standalone', *jobs.py('pass'), env=env).done() == 0
    assert hook.got == []


def test_a_server_error_is_retried_and_a_refusal_is_not(jobs, hook):
    hook.answers = [503, 500, 204]
    job = fails(jobs, env={'CPPRUN_NOTIFY_URL': hook.url})
    assert len(hook.got) == 3 and 'no notice' not in job.err
    hook.answers = [404]
    job = fails(jobs, env={'CPPRUN_NOTIFY_URL': hook.url})
    assert len(hook.got) == 4 and 'no notice was sent: 127.0.0.1:' in job.err
    assert 'HTTP status 404' in job.err


def test_https_with_a_certificate_that_the_machine_trusts(jobs, hook, tmp_path):
    openssl(
        *('req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=hook'),
        *('-addext', 'subjectAltName=IP:127.0.0.1', '-keyout', tmp_path / 'key'),
        *('-out', tmp_path / 'cert'),
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / 'cert', tmp_path / 'key')
    hook.socket = context.wrap_socket(hook.socket, server_side=True)
    url = hook.url.replace('http://', 'https://')
    trusting = {'CPPRUN_NOTIFY_URL': url, 'SSL_CERT_FILE': str(tmp_path / 'cert')}
    fails(jobs, env=trusting)
    assert [body['run_id'] for _, _, body in hook.got] == ['noticed']
    job = fails(jobs, env={'CPPRUN_NOTIFY_URL': url, 'SSL_CERT_FILE': '/dev/null'})
    assert len(hook.got) == 1 and 'no notice was sent: ' in job.err and 'trusted' in job.err


def test_a_notice_that_cannot_be_sent_is_reported(jobs):
    job = fails(jobs, env={'CPPRUN_NOTIFY_URL': f'http://127.0.0.1:{free_port()}/x'})
    assert 'no notice was sent: ' in job.err


def test_a_server_that_ends_the_handshake_is_no_cpprun(jobs):
    server = Listener(0)
    port = server.listener.getsockname()[1]
    job = fails(jobs, env={'CPPRUN_NOTIFY_URL': f'https://127.0.0.1:{port}/x'})
    server.close()
    assert 'ends the connection in the TLS handshake' in job.err
    assert 'older cpprun' not in job.err


def test_a_wrong_url_is_refused_at_the_start(jobs, tmp_path):
    job = jobs.cpprun('--standalone', f'--notify-url-file={tmp_path}/none', *jobs.py('pass'))
    assert job.done() == 1 and 'cannot be read' in job.err
    job = jobs.cpprun('--standalone', *jobs.py('pass'), env={'CPPRUN_NOTIFY_URL': 'ftp://x'})
    assert job.done() == 1 and 'must begin with http' in job.err
