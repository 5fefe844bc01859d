"""Interfaces of schedulers and of torchrun's own readers: the port for health probes, and the
records of --event-log-handler=console."""

import http.client
import json
import resource
import signal
import socket
import subprocess

import pytest
from conftest import free_port, poll, state_of
from launches import ROOT

SLEEPER = 'echo $$ >"$MARKS/up$RANK"; exec sleep 60'


def probe(port, host='127.0.0.1'):
    """Status and body; nothing without an answer."""
    connection = http.client.HTTPConnection(host, port, timeout=2)
    try:
        connection.request('GET', '/healthz')
        answer = connection.getresponse()
        return answer.status, answer.read()
    except OSError:
        return None
    finally:
        connection.close()


def test_probes_are_answered_from_start_to_end(jobs):
    port = free_port()
    env = {'TORCHELASTIC_HEALTH_CHECK_PORT': str(port)}
    script = jobs.sh(f'[ $TORCHELASTIC_RESTART_COUNT = 0 ] && exit 3; {SLEEPER}')
    args = ('--nnodes=1:2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    job = jobs.cpprun(*args, '--max-restarts=1', script, env=env)
    jobs.mark('up0')
    assert probe(port) == (200, b'ok\n')
    assert probe(port, '::1') in ((200, b'ok\n'), None)
    silent = [socket.create_connection(('127.0.0.1', port)) for _ in range(40)]
    poll(lambda: probe(port) == (200, b'ok\n'), 20, 'silent connections are closed')
    for one in silent:
        one.close()
    job.send(signal.SIGSTOP)  # a frozen agent does not answer
    poll(lambda: state_of(job.pid) == 'T', 20, 'its stop')
    assert probe(port) is None
    job.send(signal.SIGCONT)
    assert poll(lambda: probe(port), 20)[0] == 200
    job.send(signal.SIGINT)
    assert job.done(60) == 130
    assert probe(port) is None


def test_unavailable_probe_port_is_a_warning(jobs):
    with socket.socket() as taken:
        taken.bind(('', 0))
        taken.listen()
        port = taken.getsockname()[1]
        env = {'TORCHELASTIC_HEALTH_CHECK_PORT': str(port)}
        job = jobs.cpprun('--standalone', '--no-python', 'true', env=env)
        assert job.done(60) == 0
    assert f'port {port} (TORCHELASTIC_HEALTH_CHECK_PORT) cannot be had' in job.err
    for word in ('eighty', '0', '70000'):
        env = {'TORCHELASTIC_HEALTH_CHECK_PORT': word}
        job = jobs.cpprun('--standalone', '--no-python', 'true', env=env)
        assert job.done(60) == 0
        assert f'TORCHELASTIC_HEALTH_CHECK_PORT={word} is no port' in job.err


def test_probes_recover_from_descriptor_shortage(jobs):
    port = free_port()
    env = {'TORCHELASTIC_HEALTH_CHECK_PORT': str(port)}
    job = jobs.cpprun('--standalone', jobs.sh(SLEEPER), env=env)
    jobs.mark('up0')
    assert probe(port) == (200, b'ok\n')
    usual = resource.prlimit(job.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(job.pid, resource.RLIMIT_NOFILE, (3, usual[1]))
    assert probe(port) is None
    resource.prlimit(job.pid, resource.RLIMIT_NOFILE, usual)
    assert poll(lambda: probe(port), 60) == (200, b'ok\n')


# ---------------------------------------------------------------- torchrun's records


def records(text):
    """Records of torchelastic, each with its nested JSON parsed."""
    found = []
    for line in text.splitlines():
        if line.startswith('{"name": "torchelastic') or line.startswith('{"name":"torchelastic'):
            record = json.loads(line)
            record['metadata']['metadata'] = json.loads(record['metadata']['metadata'])
            found.append(record)
    return found


def shape(record):
    """The fields that are equal in every run."""
    body = dict(record['metadata'])
    inner = dict(body.pop('metadata'))
    for name in ('hostname', 'worker_id', 'total_run_time', 'duration_ms', 'raw_error'):
        body[name] = type(body[name]).__name__
    inner['worker_pid'] = [type(pid).__name__ for pid in inner.get('worker_pid', [])]
    inner['entry_point'] = type(inner['entry_point']).__name__
    return record['name'], record['source'], record['timestamp'], body, inner


FLAGS = ('--nnodes=1', '--nproc-per-node=2', '--rdzv-backend=c10d', '--rdzv-id=j1',
         '--rdzv-endpoint=localhost:0', '--max-restarts=1', '--event-log-handler=console')


@pytest.mark.parametrize('code', ['sys.exit(0)', 'sys.exit(3)'])
def test_records_have_torchruns_format(jobs, code):
    torchrun = ROOT / '.venv/bin/torchrun'
    if not torchrun.exists():
        pytest.skip('no torch in .venv')
    script = jobs.write('train.py', f'import os, sys\nif os.environ["RANK"] == "0": {code}\n'
                        'import time; time.sleep(9 if "3" in sys.argv else 0)\n')
    args = [*FLAGS, str(script), code[9]]
    job = jobs.cpprun(*args)
    theirs = subprocess.run([torchrun, *args], capture_output=True, text=True, timeout=500,
                            check=False, env=jobs.env())
    assert job.done(60) == theirs.returncode
    ours, wanted = [[shape(r) for r in records(text)] for text in (job.err, theirs.stderr)]
    assert sorted(map(str, ours)) == sorted(map(str, wanted))
    assert [name for name, *_ in ours] == [name for name, *_ in wanted]


def test_records_are_off_by_default(jobs):
    job = jobs.cpprun('--standalone', '--no-python', 'true')
    assert job.done(60) == 0
    assert 'torchelastic.worker.status' not in job.err
