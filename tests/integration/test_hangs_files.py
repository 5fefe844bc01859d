"""A worker that reads a file whose server never answers (FUSE): distinguished, reported, ended."""

import contextlib
import re
import subprocess

import pytest
from conftest import poll, state_of
from launches import ROOT
from mounted_files import SYSTEM_PYTHON, why_not
from test_hangs import root_cause, workers

FORGET_S = 20


@contextlib.contextmanager
def mounted(folder):
    """The file system of tests/support/hanging_files.py."""
    folder.mkdir()
    server = subprocess.Popen([SYSTEM_PYTHON, ROOT / 'tests/support/hanging_files.py', folder],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        poll(lambda: server.poll() is not None or (folder / 'stuck').exists(), 30, 'its mount')
        if server.poll() is not None:
            pytest.skip(f'no file system can be mounted here: {server.stderr.read().decode()}')
        yield folder
    finally:
        server.kill()  # a waiting reader gets an error
        server.wait()
        server.stderr.close()
        subprocess.run(['umount', '--lazy', folder], capture_output=True, timeout=30, check=False)


@pytest.fixture
def stuck(tmp_path):
    """A file that can be opened, and is never read to its end."""
    if why := why_not():
        pytest.skip(why)
    with mounted(tmp_path / 'mounted') as folder:
        yield folder / 'stuck'


def code_of(stuck, before=''):
    return f"""
if rank == '1':
    open(os.environ['MARKS'] + '/pid', 'w').write(str(os.getpid()))
    {before or 'pass'}
    open({str(stuck)!r}, 'rb').read()
time.sleep(120)
"""


def test_read_that_never_returns(jobs, stuck):
    job = workers(jobs, code_of(stuck), '--hang-timeout=2', '--shutdown-timeout=1')
    (pid,) = jobs.numbers(['pid'])
    poll(lambda: state_of(pid) == 'D', FORGET_S, 'its wait')
    assert job.done(60) == 1
    assert root_cause(job)[1] == '1', job.err
    assert 'it waits inside the kernel' in root_cause(job)[2]
    assert re.search(r'rank 1 .*: no heartbeats; blocked inside the kernel', job.err)
    assert ' hung on rank ' in job.err
    assert state_of(pid) == ''


def test_batch_that_never_arrives_with_heartbeats(jobs, stuck):
    """The others wait for it in a collective."""
    code = 'w.heartbeat(7)\nif rank != "1":\n    wait_in_barrier()\n' + code_of(stuck)
    job = workers(jobs, code, '--hang-timeout=2', '--shutdown-timeout=1', n=3)
    assert job.done(60) == 1
    assert root_cause(job)[1] == '1', job.err
    assert 'it waits inside the kernel' in root_cause(job)[2]
    assert re.search(r'kernel: waits in \w+', job.err.split('the one to look at:')[1])
