"""cpprun_worker.Snapshot: saves in memory only, between those that are written to disk."""

import pytest
from cpprunctl import ctl
from launches import ROOT
from mounted_files import mount as mount  # a fixture
from snapshot_folders import steps_in
from test_python_snapshot import (
    KILLS,
    PYTHON,
    RandomKills,
    alone,
    from_lines,
    result,
    train,
    undisturbed,
)
from torch_python import needs_torch

pytestmark = needs_torch


@pytest.mark.parametrize('n', [1, 2])
def test_a_killed_worker_resumes_from_a_save_that_is_not_on_disk(jobs, n):
    env = {'CPPRUN_FAULTS': f'kill:rank={n - 1},step=19,attempt=0'}
    args = ('every=2', 'disk_every=10', 'flags=waits', 'keep=9')
    flags = ('--max-restarts=1', '--snapshot-dir=runs')
    job = train(jobs, n, *args, flags=flags, env=env)
    assert result(job, n) == undisturbed(jobs, n)
    assert from_lines(job)[n:] == [(18, 'memory')] * n
    assert 'left out' not in job.output
    # The first save of each process is on disk, then each that comes ten steps later.
    assert steps_in(jobs.folder / 'runs') == [2, 12, 20, 30]
    assert ctl('snapshot', 'verify', jobs.folder / 'runs').returncode == 0


def test_a_time_between_saves_on_disk(jobs):
    args = ('every=0.1s', 'disk_every=1h', 'sleep=0.1', 'flags=waits', 'keep=9')
    job = train(jobs, 2, *args, flags=('--snapshot-dir=runs',))
    assert result(job, 2) == undisturbed(jobs, 2)
    assert len(steps_in(jobs.folder / 'runs')) == 1
    args = ('every=5', 'disk_every=1ms', 'flags=waits', 'folder=often', 'keep=9')
    assert result(train(jobs, 2, *args), 2) == undisturbed(jobs, 2)
    assert steps_in(jobs.folder / 'often') == [5, 10, 15, 20, 25, 30]


def test_without_an_agent_only_saves_on_disk_are_made(jobs):
    job = alone(jobs, 'every=2', 'disk_every=10', 'flags=waits', 'folder=runs', 'keep=9')
    assert result(job) == undisturbed(jobs, 1)
    assert steps_in(jobs.folder / 'runs') == [2, 12, 22]
    assert 'left out' not in job.output


def test_a_write_that_has_failed_is_tried_again_with_the_next_save(jobs):
    env = {'CPPRUN_FAULTS': 'throw:rank=0,step=2,phase=saving'}
    args = ('every=2', 'disk_every=10', 'flags=waits', 'folder=runs', 'keep=9')
    job = train(jobs, 2, *args, env=env)
    assert result(job, 2) == undisturbed(jobs, 2)
    assert 'the snapshot of step 2 was not written: rank 0: fault throw' in job.output
    assert 'snapshots are written again, from step 4 on' in job.output
    assert steps_in(jobs.folder / 'runs') == [4, 14, 24]


def test_while_a_slow_disk_writes_saves_continue_in_memory(jobs, mount):
    """Creating and renaming take three seconds each, ten steps two."""
    shown = mount('slow:3')
    (shown.parent / 'behind.slow').write_text('create rename')
    env = {'CPPRUN_FAULTS': 'kill:rank=1,step=14,attempt=0'}
    flags = ('--max-restarts=1', f'--snapshot-dir={shown}/runs')
    job = train(jobs, 2, 'sleep=0.2', flags=flags, env=env)
    assert result(job, 2) == undisturbed(jobs, 2)
    assert from_lines(job)[2:] == [(10, 'memory')] * 2
    text = 'the snapshot of step 10 is in memory only: the last one is still being written'
    assert text in job.output


def test_saves_in_memory_leave_alone_what_a_slow_disk_writes(jobs, mount):
    """Creating a file takes a second; its content is written afterwards."""
    shown = mount('slow:1')
    (shown.parent / 'behind.slow').write_text('create')
    job = train(jobs, 1, 'every=1', 'sleep=0.2', flags=(f'--snapshot-dir={shown}/runs',))
    assert result(job) == undisturbed(jobs, 1)
    assert 'is in memory only: the last one is still being written' in job.output
    (shown.parent / 'behind.slow').unlink()
    assert steps_in(shown / 'runs')[0] == 1 and len(steps_in(shown / 'runs')) <= 3
    assert ctl('snapshot', 'verify', shown / 'runs').returncode == 0


def test_random_kills_do_not_change_the_result(jobs):
    expected = undisturbed(jobs, 2)
    flags = ('--max-restarts=50', '--snapshot-dir=runs')
    job = train(jobs, 2, 'every=1', 'disk_every=5', 'sleep=0.03', flags=flags)
    kills = RandomKills(job, jobs.folder / 'runs', 2, seed=7)
    kills.run(4 * KILLS)
    assert result(job, 2) == expected, job.output
    assert kills.count >= 1
    assert ctl('snapshot', 'verify', jobs.folder / 'runs').returncode == 0


def test_a_save_after_resuming_an_earlier_step_is_on_disk(jobs):
    """What is on disk of later steps is not what the training continues from."""
    code = f"""
import shutil, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import cpprun_worker
state = cpprun_worker.Snapshot('runs', in_memory=False)
assert state.maybe_save(10, every=1, disk_every=100) and state.wait()
assert state.save(30)
shutil.rmtree('runs/step-30')
assert state.resume() == 10
assert state.maybe_save(11, every=1, disk_every=100) and state.wait()
"""
    assert jobs.run(PYTHON, '-c', code) == (0, '')
    assert steps_in(jobs.folder / 'runs') == [10, 11]


def test_an_unusable_disk_every_is_refused(jobs):
    code = f"""
import sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import cpprun_worker
state = cpprun_worker.Snapshot('runs')
for disk_every in ('auto', 'soon', '0s', 0):
    try:
        state.maybe_save(1, every=1, disk_every=disk_every)
    except ValueError as error:
        print(error)
"""
    wanted = "wanted is a number of steps, '30s' or '5min'"
    code, output = jobs.run(PYTHON, '-c', code)
    assert (code, output.splitlines()) == (
        0,
        [
            *(f"disk_every is '{each}'; {wanted}" for each in ('auto', 'soon', '0s')),
            'disk_every is 0; wanted is 1 to 9223372036854775807',
        ],
    )
