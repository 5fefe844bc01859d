"""The warning that no store listens at MASTER_PORT appears if a worker tries to connect there, and
only then."""

import pytest
from conftest import PYTHON

WARNING = 'no process serves MASTER_PORT'
SOON = {'CPPRUN_TEST_MINUTE': '0.2'}

# connect() as torch's client does it: without blocking, again and again.
CONNECT = """
import os, socket, sys, time
def connect(port):
    s = socket.socket()
    s.settimeout(60)
    try:
        s.connect((os.environ['MASTER_ADDR'], port))
        return s
    except ConnectionRefusedError:
        return None
    finally:
        s.close()
port = int(os.environ['MASTER_PORT'])
over = os.path.join(os.environ['MARKS'], 'over')
"""


def test_workers_that_only_connect_cause_one_warning(jobs):
    code = CONNECT + 'while not os.path.exists(over): connect(port); time.sleep(0.05)'
    job = jobs.cpprun('--nproc-per-node=2', jobs.py(code), env=SOON)
    port = job.wait_for(WARNING + r' (\d+)')[1]
    assert '--worker-store=agent' in job.err
    again = jobs.py(CONNECT + f'for _ in range(20): connect({port})')
    assert jobs.cpprun(again).done() == 0
    (jobs.marks / 'over').touch()
    assert job.done() == 0, job.output
    assert job.err.count(WARNING) == 1


def test_each_round_warns(jobs):
    code = CONNECT + (
        'while not os.path.exists(over + os.environ["TORCHELASTIC_RESTART_COUNT"]):\n'
        '    connect(port); time.sleep(0.05)\n'
        'sys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] == "0")'
    )
    job = jobs.cpprun('--max-restarts=1', jobs.py(code), env=SOON)
    job.wait_for(WARNING)
    (jobs.marks / 'over0').touch()
    job.wait_for_all(WARNING, 2)
    (jobs.marks / 'over1').touch()
    assert job.done() == 0, job.output


def test_torch_client_causes_the_warning(jobs):
    pytest.importorskip('torch')
    code = """
import datetime, os, torch.distributed as dist
try:
    dist.TCPStore(os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT']), is_master=False,
                  wait_for_workers=False, timeout=datetime.timedelta(seconds=600))
except dist.DistError: pass
"""
    script = jobs.script(code, PYTHON)
    job = jobs.cpprun('--no-python', script, env=SOON)
    job.wait_for(WARNING, 120)


def test_job_that_never_connects_causes_no_warning(jobs):
    """Refused connections to other ports do not count."""
    code = CONNECT + (
        'end = time.monotonic() + 2\n'
        'while time.monotonic() < end: connect(port - 1); time.sleep(0.05)'
    )
    sleeper = jobs.cpprun('--nproc-per-node=2', jobs.sh('exec sleep 2'), env=SOON)
    other = jobs.cpprun(jobs.py(code), env=SOON)
    assert [sleeper.done(), other.done()] == [0, 0], sleeper.output + other.output
    assert WARNING not in sleeper.output + other.output


def test_closed_store_causes_no_warning(jobs):
    """An established connection that ends with the store is no refusal."""
    code = CONNECT + """
server = socket.create_server(('127.0.0.1', port))
client = socket.create_connection(('127.0.0.1', port))
accepted, _ = server.accept()
server.close()
time.sleep(2)
client.close()
accepted.close()
time.sleep(1)
"""
    job = jobs.cpprun(jobs.py(code), env=SOON)
    assert job.done() == 0, job.output
    assert WARNING not in job.output


def test_agents_store_causes_no_warning(jobs):
    code = CONNECT + 'assert connect(port); time.sleep(1)'
    job = jobs.cpprun('--worker-store=agent', jobs.py(code), env=SOON)
    assert job.done() == 0, job.output
    assert WARNING not in job.output
