"""The end of a run whose temporary folder is on a file system that keeps open files under other
names (FUSE without hard_remove, as NFS does), or that does not answer any more: the launcher ends.
"""

import contextlib
import os
import re
import signal
import time

import pytest
from conftest import is_alive
from cpprunctl import output_of
from mounted_files import mount as mount  # a fixture

GOES_S = 60  # far above limits::kFolderRemovalTimeout


def test_nothing_is_left_after_success(jobs, mount):
    folder = mount()
    env = {'TMPDIR': str(folder), 'OMP_NUM_THREADS': '1'}
    job = jobs.cpprun('--nproc-per-node=2', jobs.sh('exit 0'), env=env)
    assert job.done(GOES_S) == 0, job.output
    assert list(folder.iterdir()) == []
    assert job.err == ''


def test_after_a_signal(jobs, mount):
    folder = mount()
    job = jobs.cpprun(jobs.sh('echo x >"$MARKS/up"; exec sleep 300'), env={'TMPDIR': str(folder)})
    jobs.mark('up')
    job.send(signal.SIGTERM)
    assert job.done(GOES_S) == 128 + signal.SIGTERM, job.output
    assert list(folder.iterdir()) == []


def test_failure_keeps_its_logs(jobs, mount):
    folder = mount()
    job = jobs.cpprun('-r', '3', jobs.sh('echo a line; exit 5'), env={'TMPDIR': str(folder)})
    assert job.done(GOES_S) == 1, job.output
    (kept,) = re.findall(r'^  logs +(\S+)', job.err, re.M)
    with open(f'{kept}/attempt_0/0/stdout.log') as log:
        assert log.read() == 'a line\n'


def test_file_held_open_by_others(jobs, mount):
    """The file system gives it a new name after each removal."""
    folder = mount()
    code = 'echo x >"$MARKS/up"; while [ ! -e "$MARKS/go" ]; do sleep 0.05; done'
    job = jobs.cpprun(jobs.sh(code), env={'TMPDIR': str(folder)})
    jobs.mark('up')
    (events,) = folder.glob('torchelastic_*/*/events.jsonl')
    with open(events):
        (jobs.marks / 'go').write_text('x')
        assert job.done(GOES_S) == 0, job.output
    assert f'the temporary folder stays: {events.parents[1]} cannot be removed' in job.err


@pytest.mark.parametrize('how', ['success', 'signal'])
def test_server_that_does_not_answer(jobs, mount, how):
    folder = mount('unlink', 'rmdir')
    code = 'echo x >"$MARKS/up"; [ $0 = success ] || exec sleep 300'.replace('$0', how)
    job = jobs.cpprun(jobs.sh(code), env={'TMPDIR': str(folder)})
    jobs.mark('up')
    if how == 'signal':
        job.send(signal.SIGTERM)
    wanted = 0 if how == 'success' else 128 + signal.SIGTERM
    assert job.done(GOES_S) == wanted, job.output
    pattern = r'its file system does not answer \(process (\d+) waits for it\)'
    (waits,) = re.findall(pattern, job.err)
    with contextlib.suppress(ProcessLookupError):
        assert not is_alive(int(waits)) or os.kill(int(waits), signal.SIGKILL) is None


def test_events_of_other_jobs_are_shown(jobs, mount):
    """Without a name cpprunctl looks at the files of all jobs here."""
    hanging = jobs.cpprun(jobs.sh('echo x >"$MARKS/up"; exec sleep 300'),
                          env={'TMPDIR': str(mount())})
    jobs.mark('up')
    jobs.cpprun(jobs.sh('echo x >"$MARKS/other"; exec sleep 300'))
    jobs.mark('other')
    (server,) = mount.servers
    server.send_signal(signal.SIGSTOP)
    try:
        time.sleep(2)  # the kernel keeps attributes for a second
        output_of('events')
    finally:
        server.send_signal(signal.SIGCONT)
    hanging.send(signal.SIGTERM)
    assert hanging.done(GOES_S) == 128 + signal.SIGTERM, hanging.output
