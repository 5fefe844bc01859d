"""The Trainer on several ranks: the tutorial's lines and losses, faults, stop requests."""

import signal
import subprocess

import pytest
from launches import BIN


@pytest.mark.parametrize(('world', 'accumulate'), [(1, 1), (2, 1), (2, 3), (4, 4)])
def test_lines_and_losses_equal_the_tutorials(ranks, world, accumulate):
    ours = ranks.case('trainer', world, 'trainer_toy', 4, accumulate).well()
    twin = ranks.twin(world, 'trainer_toy.py', 4, accumulate).well()
    assert ours.lines() == twin.lines()
    assert len(ours.lines('[GPU')) == 4 * world
    assert ours.lines('saved') == ['saved 0', 'saved 2', 'saved 3']


@pytest.mark.parametrize(('world', 'steps'), [(1, 64), (2, 32), (3, 22), (4, 16), (8, 8)])
def test_steps_follow_the_world_size(ranks, world, steps):
    job = ranks.case('trainer', world, 'trainer_toy', 1, 1).well()
    expected = [
        f'[GPU{rank}] Epoch 0 | Batchsize: 32 | Steps: {steps}' for rank in range(world)
    ]
    assert job.lines('[GPU') == expected
    assert job.err.count('effective batch size') == 1
    assert f'effective batch size {32 * world} ({world} ranks x 32)' in job.err


def test_request_on_one_rank_stops_all(ranks):
    job = ranks.case('trainer', 3, 'trainer_stop', 'after').well()
    assert job.lines('stop') == [f'stop rank {rank} in 2 over 1' for rank in range(3)]
    assert job.lines('rank') == [f'rank {rank} ended 3 epochs stopped 1' for rank in range(3)]
    assert job.lines('saved') == ['saved 2']


def test_request_takes_effect_within_a_training_epoch(ranks):
    job = ranks.case('trainer', 2, 'trainer_stop', 'within').well()
    assert job.lines('stop') == [f'stop rank {rank} in 2 over 0' for rank in range(2)]
    assert job.lines('rank') == [f'rank {rank} ended 2 epochs stopped 1' for rank in range(2)]
    assert job.lines('saved') == ['saved 2']


def test_fault_happens_at_its_training_epoch(ranks):
    fault = {'CPPRUN_FAULTS': 'kill:rank=1,epoch=2,attempt=0'}
    job = ranks.cpprun(
        2,
        BIN / 'sdk_trainer_cases',
        'trainer_toy',
        4,
        1,
        flags=('--max-restarts=1',),
        env=fault,
    ).well()
    epochs = [line.split(' | ')[0] for line in job.lines('[GPU1]')]
    assert epochs.count('[GPU1] Epoch 0') == 2
    assert epochs.count('[GPU1] Epoch 2') == 2
    assert epochs.count('[GPU1] Epoch 3') == 1


@pytest.mark.parametrize('world', [1, 4])
def test_killed_rank_changes_no_bit(ranks, world):
    """Four ranks sum as before the kill only if DDP has the same buckets."""
    wide = ('trainer_wide', 2, 3, 0)
    whole = ranks.case('trainer', world, *wide).well()
    fault = {'CPPRUN_FAULTS': f'kill:rank={world - 1},step=7,attempt=0'}
    (ranks.folder / 'snapshots').rename(ranks.folder / 'of-the-whole')
    killed = ranks.case('trainer', world, *wide, flags=('--max-restarts=1',), env=fault).well()
    assert len(killed.lines('Resuming training from snapshot')) == world
    assert len(set(whole.lines('hash='))) == 1
    assert killed.lines('hash=') == whole.lines('hash=')


def test_sigterm_before_the_first_step_loses_nothing(ranks, tmp_path):
    """Though the first batch takes longer than --shutdown-timeout, so that nothing is saved."""
    job = ['--standalone', '--nproc-per-node=2', '--shutdown-timeout=1', '--no-python']
    case = [BIN / 'sdk_trainer_cases', 'trainer_wide', '1', '1', '600000']
    with subprocess.Popen(
        [BIN / 'cpprun', *job, *case],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as stopped:
        for rank in range(2):
            assert 'Epoch 0' in stopped.stdout.readline(), rank
        stopped.send_signal(signal.SIGTERM)
        err = stopped.communicate(timeout=100)[1]
    assert stopped.returncode == 75, err
    assert 'nothing is lost' in err


def test_sigterm_saves_and_the_same_command_resumes(ranks, tmp_path):
    toy = [BIN / 'ex_toy_trainer', '--solo', '--task', 'regression', '--hash']
    command = [*toy, '--total-epochs', '200', '--save-every', '1000']
    whole = ranks.run(*command, '--snapshot-path', 'whole.pt').well()
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as stopped:
        while 'Epoch 20' not in stopped.stdout.readline():
            pass
        stopped.send_signal(signal.SIGTERM)
        rest = stopped.communicate(timeout=60)[0]
        assert stopped.returncode == 75
    assert 'Training snapshot saved at snapshot.pt' in rest
    again = ranks.run(*command).well()
    assert 'Resuming training from snapshot at Epoch' in again.out
    assert again.out.splitlines()[-1] == whole.out.splitlines()[-1]
    assert 'Nothing to do: all 200' in ranks.run(*command).well().out
