"""Saves in memory only: between those that are written to disk, and while a slow disk writes."""

import subprocess

import pytest
from launches import BIN
from mounted_files import mount as mount  # a fixture
from snapshot_folders import steps_in
from test_resume import ends, starts, train

WORDS = ('async=1', 'waits=1', 'every=2', 'disk_every=6', 'keep=9')
BUSY = 'the last one is still being written; this message appears once'


def is_intact(folder):
    command = (BIN / 'cpprunctl', 'snapshot', 'verify', folder)
    return subprocess.run(command, capture_output=True, timeout=600, check=False).returncode == 0


@pytest.mark.parametrize('world', [1, 2])
def test_killed_rank_resumes_from_a_save_that_is_not_on_disk(ranks, world):
    undisturbed = train(ranks, world, folder='a')
    fault = f'kill:rank={world - 1},step=11,attempt=0'
    killed = train(ranks, world, *WORDS, folder='b', flags=('--max-restarts=1',), fault=fault)
    assert ends(killed) == ends(undisturbed)
    assert starts(killed).count('memory step 10') == world
    assert 'left out' not in killed.err
    # The first save of each process is on disk, then each that comes six steps later.
    assert steps_in(ranks.folder / 'b') == [2, 8, 12]
    assert is_intact(ranks.folder / 'b')


def test_time_between_saves_on_disk(ranks):
    undisturbed = train(ranks, 2, folder='a')
    words = ('async=1', 'waits=1', 'keep=99', 'sleep_ms=30')
    rarely = train(ranks, 2, *words, 'every=0', 'every_ms=60', 'disk_every_ms=3600000')
    assert ends(rarely) == ends(undisturbed)
    assert len(steps_in(ranks.folder / 'snapshots')) == 1
    often = train(ranks, 2, *words, 'every=2', 'disk_every_ms=1', folder='b')
    assert ends(often) == ends(undisturbed)
    assert steps_in(ranks.folder / 'b') == list(range(2, 17, 2))


@pytest.mark.parametrize('why', ['no agent', 'no memory'])
def test_where_memory_does_not_serve_only_saves_on_disk_are_made(ranks, why):
    words = (*WORDS, 'prints=1')
    if why == 'no agent':
        job = ranks.lone_case('snapshot', 'snapshot_train', 'dir=snapshots', *words)
    else:
        job = train(ranks, 2, *words, 'memory=0')
    assert job.well().lines('rank 0 saved') == ['rank 0 saved 1'] * 3
    assert steps_in(ranks.folder / 'snapshots') == [2, 8, 14]
    assert 'left out' not in job.err


def test_write_that_has_failed_is_tried_again_with_the_next_save(ranks):
    (ranks.folder / 'blocked').write_text('a file where a folder belongs')
    words = ('mend=3', f'in_the_way={ranks.folder}/blocked')
    job = train(ranks, 2, *WORDS, *words, folder='blocked').well()
    assert job.err.count('the snapshot of step 2 was not written') == 1
    assert job.err.count('snapshots are written again, from step 4 on') == 1
    assert steps_in(ranks.folder / 'blocked') == [4, 10, 16]


@pytest.mark.parametrize('form', ['dir={}/runs', 'file={}/snapshot.pt'], ids=['folder', 'file'])
def test_while_a_slow_disk_writes_saves_continue_in_memory(ranks, mount, form):
    """Creating and renaming take two seconds each, six steps about one."""
    undisturbed = train(ranks, 2, 'epochs=3', folder='a')
    shown = mount('slow:2')
    (shown.parent / 'behind.slow').write_text('create rename')
    words = ('async=1', 'every=4', 'epochs=3', 'sleep_ms=200', form.format(shown))
    fault = 'kill:rank=1,step=10,attempt=0'
    job = train(ranks, 2, *words, flags=('--max-restarts=1',), fault=fault)
    assert ends(job) == ends(undisturbed)
    assert starts(job).count('memory step 8') == 2
    assert f'the snapshot of step 8 is in memory only: {BUSY}' in job.err


def test_saves_in_memory_leave_alone_what_a_slow_disk_writes(ranks, mount):
    """Creating a file takes a second; its content is written afterwards."""
    shown = mount('slow:1')
    (shown.parent / 'behind.slow').write_text('create')
    words = ('async=1', 'every=1', 'sleep_ms=100', 'prints=1', f'dir={shown}/runs')
    job = train(ranks, 2, *words).well()
    assert f'the snapshot of step 2 is in memory only: {BUSY}' in job.err
    assert job.lines('rank 0 waited') == ['rank 0 waited 1 1']  # until the first one was on disk
    (shown.parent / 'behind.slow').unlink()
    assert steps_in(shown / 'runs') == [1]
    assert is_intact(shown / 'runs')


def test_a_state_that_grows_leaves_alone_what_a_slow_disk_writes(ranks, mount):
    shown = mount('slow:1')
    words = ('snapshot_grows', shown / 'runs', shown.parent / 'behind.slow')
    job = ranks.case('snapshot', 1, *words).well()
    why = 'no memory for it: the state has grown, and the last save is still being written'
    assert f'the snapshot of step 3 was not written: {why}' in job.err
    assert job.lines('rank') == [
        'rank 0 from memory step 4 value 4 of 8388608',
        'rank 0 waited 1',
    ]
    assert steps_in(shown / 'runs') == [1, 2]
    assert is_intact(shown / 'runs')
