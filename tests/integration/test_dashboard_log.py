"""The dashboard's log lines and its stored steps, without a browser."""

import hashlib
import hmac
import json
import sys
import urllib.error
import urllib.parse
import urllib.request

import pytest
from dashboard_events import Events
from nodes import HERE, Job, cluster, wait_for  # noqa: F401

STEPPER = ('--no-python', sys.executable, str(HERE / 'dashboard_worker.py'))
PRINTER = ('--no-python', 'sh', '-c',
           'echo "rank $RANK prints <b>hello</b>"; echo "a warning" >&2; '
           'while [ ! -e "$NODES_DIR/exit-all" ]; do sleep 0.1; done; echo "rank $RANK leaves"')
TOKEN = 'a token that nobody guesses'


def get(job, path):
    """Code and text of a page."""
    try:
        with urllib.request.urlopen(f'http://127.0.0.1:{job.port}{path}', timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def path_of(job, rank, nonce, token=TOKEN):
    signed = '\n'.join(['cpprun log lines', nonce, job.run_id, str(rank)])
    proof = hmac.new(token.encode(), signed.encode(), hashlib.sha256).hexdigest()
    query = {'job': job.run_id, 'rank': rank, 'nonce': nonce, 'mac': proof}
    return '/log?' + urllib.parse.urlencode(query, quote_via=urllib.parse.quote)


@pytest.fixture
def printers(cluster):  # noqa: F811
    """Two nodes of two workers, with log files unless `flags` disables them."""

    def start(flags=('--tee=3',), token=TOKEN, run_id='a job & more'):
        job = Job(cluster, 2, run_id=run_id)
        for node in (0, 1):
            keeps = (*flags, f'--log-dir={cluster.tmp}/logs{node}')
            job.agent(node, *keeps, nproc=2, program=PRINTER, CPPRUN_ADMIN_TOKEN=token)
        wait_for(lambda: job.status().get('phase') == 'running',
                 lambda: ''.join(a.describe() for a in cluster.agents))
        return job

    yield start
    cluster.finish()


def read_log(job, rank, holds, until=60):
    events = Events(job.port, path_of(job, rank, get(job, '/log/nonce')[1]))
    assert events.status == 200
    return events, events.next('log', holds, until)


def test_token_gives_access_to_lines_of_any_node(printers):
    job = printers()
    ranks = {}
    for rank in range(4):
        events, reply = read_log(job, rank, lambda reply: reply['out'] and reply['err'])
        assert reply['out'] == [f'rank {rank} prints <b>hello</b>']
        assert reply['err'] == ['a warning']
        ranks[rank] = reply['node']
        events.close()
    assert len(ranks) == 4 and reply['rank'] == 3


def test_lines_are_followed(printers, cluster):  # noqa: F811
    job = printers()
    events, _ = read_log(job, 1, lambda reply: reply['out'])
    kept = cluster.tmp.glob('logs*/*/attempt_0/*/stdout.log')
    path, = (path for path in kept if 'rank 1 prints' in path.read_text())
    with open(path, 'a', encoding='utf-8') as file:
        file.write('one more\n')
    assert events.next('log', lambda reply: len(reply['out']) > 1)['out'][1] == 'one more'
    events.close()


def test_lines_need_the_token(printers):
    job = printers()
    nonce = get(job, '/log/nonce')[1]
    code, text = get(job, path_of(job, 0, nonce, 'some other token of this length'))
    assert code == 403 and 'the token is wrong' in text
    code, text = get(job, '/log/nonce')
    assert code == 403 and 'a wrong token came from there' in text
    for path in ('/log', '/log?job=x', path_of(job, 0, nonce), path_of(job, 0, 'made-up')):
        code, text = get(job, path)
        assert code == 403 and 'hello' not in text, path
    for public in ('/', '/status', '/steps', '/metrics'):
        assert 'hello' not in get(job, public)[1]
    events = Events(job.port)
    assert 'hello' not in json.dumps(events.next('state'))
    events.close()


def test_coordinator_without_a_token_shows_no_lines(printers):
    job = printers(token='')
    code, text = get(job, '/log/nonce')
    assert code == 403 and 'without CPPRUN_ADMIN_TOKEN' in text


def test_job_without_log_files_is_reported(printers):
    job = printers(flags=())
    events, reply = read_log(job, 0, lambda reply: 'keeps no log files' in reply['why'])
    assert '--tee 3' in reply['why'] and reply['out'] == []
    events.close()
    events, reply = read_log(job, 9, lambda reply: reply['why'])
    assert reply['why'] == 'no node has this rank now'
    events.close()


def test_steps_are_remembered_for_later_readers(cluster):  # noqa: F811
    job = Job(cluster, 1)
    agent = job.agent(0, nproc=2, program=STEPPER, SLOW='1')
    wait_for(job.is_open, agent.describe)
    assert json.loads(get(job, '/steps')[1])['jobs'] == {}, 'no reader has asked yet'
    events = Events(job.port)
    events.next('progress', lambda reply: job.run_id in reply['jobs'])
    events.next('progress')

    def points():
        return json.loads(get(job, '/steps')[1])['jobs'][job.run_id]

    wait_for(lambda: points()[-1][4] is not None, agent.describe)
    events.close()
    assert len(points()) >= 2
    for at_ms, number, step, last, median, slowest, rank in points():
        assert at_ms > 0 and number == 1 and step >= last > 0
        if median is not None:  # no step has ended before the first ones
            assert 15_000 < median <= slowest and rank in (0, 1)
    cluster.exit_workers(0)
    agent.ends(0)
