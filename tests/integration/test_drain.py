"""Stopping on purpose: SIGTERM to an agent lets its workers save; exit code 75 when they have."""

import signal

import pytest
from conftest import BIN, is_alive
from snapshot_folders import make_snapshot

WORKER = BIN / 'channel_worker'
CONTINUES = 'the same command continues'
RESUMABLE = 75


@pytest.fixture(autouse=True)
def built():
    if not WORKER.exists():
        pytest.skip(f'{WORKER} is not built')


def workers(jobs, n, *words, flags=(), **options):
    """Workers of channel_worker's words; each leaves a mark up-<rank> first."""
    command = ('--standalone', f'--nproc-per-node={n}', *flags, '--no-python', WORKER, *words)
    return jobs.cpprun(*command, **options)


def saver(code):
    """A Python worker that ends with this code when SIGTERM comes."""
    return f"""
import os, signal, sys, time
def save(*_):
    sys.exit({code})
signal.signal(signal.SIGTERM, save)
open(os.environ['MARKS'] + '/up-' + os.environ['RANK'], 'w').write(str(os.getpid()))
time.sleep(60)
"""


def test_who_can_save_is_asked_and_not_signalled(jobs):
    job = workers(jobs, 2, 'ignore-term', 'can-save', 'mark=up-${local_rank}', 'await-stop',
                  'exit=75')
    pids = jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE
    assert sorted(job.out.splitlines()) == ['rank 0: stopping', 'rank 1: stopping'], 'no TERM'
    assert f'stopped on request; the workers have saved, and {CONTINUES}' in job.err
    assert 'FAILED' not in job.err and 'exited with code 75' not in job.err
    assert not any(is_alive(pid) for pid in pids)


def test_the_snapshot_that_holds_the_work_is_named_and_resumed(jobs):
    folder = jobs.folder / 'snapshots'
    flags = (f'--snapshot-dir={folder}',)
    words = ('can-save', 'mark=up-0', 'await-stop', 'mark=stopping', 'await=saved', 'exit=75')
    job = workers(jobs, 1, *words, flags=flags)
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    jobs.mark('stopping')
    make_snapshot(folder, 120)
    (jobs.marks / 'saved').write_text('x')
    assert job.done() == RESUMABLE
    assert f'stopped on request at step 120; {CONTINUES} from it ({folder}/step-120)' in job.err

    again = jobs.cpprun('--standalone', *flags, '--no-python', 'printenv', 'CPPRUN_RESUME_FROM',
                        'CPPRUN_SNAPSHOT_DIR')
    assert again.done() == 0
    assert again.out.split() == [f'{folder}/step-120', str(folder)]


def test_a_saving_worker_may_commit(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'may-commit', 'exit=75')
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE
    assert 'rank 0: may commit' in job.out


def test_others_get_the_signal_as_ever(jobs):
    job = workers(jobs, 2, 'ignore-term', 'mark=up-${local_rank}', 'await-term', 'exit=0')
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM
    assert job.out.count('TERM') == 2
    assert 'ended by SIGTERM' in job.err


def test_python_workers_save_when_the_signal_comes(jobs):
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', *jobs.py(saver(RESUMABLE)))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE
    assert CONTINUES in job.err


def test_who_ends_otherwise_has_not_saved(jobs):
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', *jobs.py(saver(0)))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM


def test_that_code_without_a_request_is_a_failure(jobs):
    job = workers(jobs, 1, 'exit=75', flags=('--max-restarts=1',))
    assert job.done() == 1
    assert 'exited with code 75' in job.err and 'Restarts used: 1 of 1' in job.err


def test_a_worker_that_saves_for_nobody_is_ended(jobs):
    """One fails while the other still saves: it gets SIGTERM at once, not after the grace."""
    words = ('can-save', 'mark=up-${local_rank}', 'await-stop', 'await=${local_rank}', 'exit=3')
    job = workers(jobs, 2, *words, flags=('--shutdown-timeout=3600',))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    (jobs.marks / '0').write_text('x')
    assert job.done() == 128 + signal.SIGTERM


@pytest.mark.parametrize('second', [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_kills_at_once(jobs, second):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'mark=stopping', 'await=never')
    pid = int(jobs.mark('up-0'))
    job.send(signal.SIGTERM)
    jobs.mark('stopping')
    job.send(second)
    assert job.done(seconds=5) == 128 + signal.SIGTERM
    assert not is_alive(pid)


def test_the_grace_ends_a_save_that_takes_too_long(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'await=never',
                  flags=('--shutdown-timeout=1',))
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM


def test_ctrl_c_asks_nobody_to_save(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await=never')
    jobs.mark('up-0')
    job.send(signal.SIGINT)
    assert job.done() == 128 + signal.SIGINT
