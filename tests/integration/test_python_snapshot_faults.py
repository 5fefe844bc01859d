"""cpprun_worker.Snapshot when what is around the training fails: the agent, and the file system of
the snapshots. Training continues, or resumes, with the parameters of a run without failure.
"""

import signal
import subprocess

import pytest
from conftest import has_own_mounts, is_alive, kill, poll
from cpprunctl import ctl
from launches import ROOT, has_no_traces
from mounted_files import mount as mount  # a fixture
from snapshot_folders import newest_step
from test_python_snapshot import (
    PYTHON,
    WORKER,
    alone,
    from_lines,
    result,
    train,
    undisturbed,
)
from torch_python import needs_torch

pytestmark = needs_torch

TAKES_S = 120
UNUSABLE = 69


def test_after_the_death_of_the_agent_a_new_job_resumes_from_disk(jobs):
    flags = ('--snapshot-dir=runs',)
    job = train(jobs, 2, 'sleep=0.1', flags=flags)
    poll(lambda: newest_step(jobs.folder / 'runs') >= 10, TAKES_S, lambda: job.output)
    workers = [job.worker(rank) for rank in range(2)]
    job.process.send_signal(signal.SIGKILL)
    job.done()
    poll(lambda: not any(map(is_alive, workers)), TAKES_S, 'the end of the workers')
    again = train(jobs, 2, flags=flags)
    assert result(again, 2) == undisturbed(jobs, 2)
    ((step, where),) = set(from_lines(again))
    assert (where, step >= 10) == ('disk', True)
    assert not list((jobs.folder / 'runs').glob('.step-*'))


def test_a_writer_gets_its_lock_also_while_a_sweep_looks_at_it(jobs):
    code = f"""
import fcntl, os, sys, threading
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
from cpprun_worker._snapshot import files
sweep = os.open('.', os.O_RDONLY)
fcntl.flock(sweep, fcntl.LOCK_EX)
threading.Timer(0.05, os.close, (sweep,)).start()
lock = files.Lock('.')
assert files.is_locked('.')
lock.close()
assert not files.is_locked('.')
sweep = os.open('.', os.O_RDONLY)
fcntl.flock(sweep, fcntl.LOCK_EX)
files.Lock('.').close()  # a sweep that is suspended does not hold the writer
"""
    assert jobs.run(PYTHON, '-c', code) == (0, '')


READ_ONLY = """
mount -t tmpfs none runs
"$@" &
while [ ! -e runs/step-10 ]; do kill -0 $! || exit 9; sleep 0.05; done
until mount -o remount,ro runs; do kill -0 $! || exit 9; sleep 0.05; done
wait $!
code=$?
cp -r runs kept
exit $code
"""


@pytest.mark.skipif(not has_own_mounts(), reason='remounting a file system needs root')
def test_a_file_system_that_becomes_read_only_keeps_the_snapshots_of_before(jobs):
    (jobs.folder / 'runs').mkdir()
    args = (PYTHON, '-u', WORKER, 'folder=runs', 'sleep=0.2')
    command = ('unshare', '-m', 'sh', '-c', READ_ONLY, 'sh', *args)
    job = jobs.start(*command, env={'OMP_NUM_THREADS': '1'})
    assert result(job) == undisturbed(jobs, 1)
    assert job.output.count('was not written: ') == job.output.count('Read-only file system') == 1
    assert has_no_traces(job.output.replace('mount: ', ''))
    assert ctl('snapshot', 'verify', jobs.folder / 'kept').returncode == 0
    assert 'saved False' in job.output


def test_a_slow_file_system_does_not_hold_the_training(jobs, mount):
    """Creating and renaming take a second each, a save several; 30 steps take a few seconds."""
    shown = mount('slow:1')
    (shown.parent / 'behind.slow').write_text('create rename')
    job = alone(jobs, f'folder={shown}/runs', 'sleep=0.05')
    assert result(job) == undisturbed(jobs, 1)
    assert 'is left out: the last one is still being written' in job.output
    (shown.parent / 'behind.slow').unlink()
    assert ctl('snapshot', 'verify', shown / 'runs').returncode == 0
    last = alone(jobs, f'folder={shown}/runs', 'steps=31', 'every=50')
    assert last.done() == 0, last.output
    ((step, where),) = from_lines(last)
    assert (where, step >= 5) == ('disk', True)


def test_a_file_system_that_never_answers_holds_neither_training_nor_its_end(jobs, mount):
    shown = mount()
    job = train(jobs, 2, f'folder={shown}/runs', 'every=10', 'hold=13', 'flags=impatient')
    job.wait_for_all(r'\] holds', 2, TAKES_S)
    assert newest_step(shown / 'runs') == 10
    (server,) = mount.servers
    server.send_signal(signal.SIGSTOP)  # between two saves: it has no request of a worker
    (jobs.folder / 'go').touch()
    assert result(job, 2) == undisturbed(jobs, 2)
    assert 'has not answered for 3 s, so the program does not wait for this snapshot' in job.output
    assert 'saved False' in job.output
    server.send_signal(signal.SIGCONT)
    assert ctl('snapshot', 'verify', shown / 'runs').returncode == 0


@pytest.mark.parametrize('call', ['create', 'flush'])
def test_a_request_that_cannot_be_cancelled_holds_no_stop(jobs, mount, call):
    """A process inside a call that the file server has taken and never answers can't end: not even
    SIGKILL ends it. The training is done, and a request ends the job."""
    shown = mount('slow:3600')
    args = (f'folder={shown}/runs', 'every=10', 'hold=13', 'flags=impatient')
    job = train(jobs, 2, *args, flags=('--shutdown-timeout=1',))
    job.wait_for_all(r'\] holds', 2, TAKES_S)
    (shown.parent / 'behind.slow').write_text(call)
    (jobs.folder / 'go').touch()
    found = job.wait_for_all(r'\] parameters (\w+)', 2, TAKES_S)
    assert set(found) == {undisturbed(jobs, 2)[0]}
    job.send(signal.SIGTERM)
    assert job.done() == UNUSABLE, job.output
    assert 'this node is unusable: SIGKILL did not end rank ' in job.err


def test_without_its_file_system_a_killed_worker_resumes_from_memory(jobs, mount):
    shown = mount()
    args = (f'folder={shown}/runs', 'sleep=0.2')
    job = train(jobs, 2, *args, flags=('--max-restarts=1',))
    poll(lambda: newest_step(shown / 'runs') >= 10, TAKES_S, lambda: job.output)
    for server in mount.servers:
        server.kill()
        server.wait()
    job.wait_for(r'step 17$', TAKES_S)
    kill(job.worker(1))
    assert result(job, 2) == undisturbed(jobs, 2)
    ((step, where),) = set(from_lines(job)[2:])
    assert (where, step >= 10) == ('memory', True)
    assert 'Transport endpoint is not connected' in job.output
    assert subprocess.run(['mountpoint', '-q', shown], check=False, timeout=30).returncode != 0
