"""An interrupted training ends like an uninterrupted one, bit for bit."""

import json

import pytest
from launches import BIN
from run_events import events_of_run
from snapshot_folders import steps_in
from torch_python import PYTHON


def train(ranks, world, *words, flags=(), fault=None, folder='snapshots', **options):
    env = {'CPPRUN_FAULTS': fault} if fault else {}
    return ranks.case(
        'snapshot',
        world,
        'snapshot_train',
        f'dir={folder}',
        *words,
        flags=flags,
        env=env,
        **options,
    )


def ends(job):
    """The final state of the ranks: parameters, generators, counts, rates."""
    others = ('from', 'saved', 'waited')
    return [line for line in job.well().lines('rank') if line.split()[2] not in others]


def starts(job):
    return [line.split(' from ')[1] for line in job.lines('rank') if ' from ' in line]


def values_of(ranks, path, name):
    """The different elements of a tensor."""
    look = 'import sys, torch; print(*torch.load(sys.argv[1])[sys.argv[2]].unique().tolist())'
    return ranks.run(PYTHON, '-c', look, path, name).well().out.split()


@pytest.mark.parametrize('optimizer', ['sgd', 'adamw'])
@pytest.mark.parametrize('world', [1, 2, 4])
def test_killed_rank_costs_nothing(ranks, world, optimizer):
    words = (f'optimizer={optimizer}',)
    undisturbed = train(ranks, world, *words, folder='a')
    killed = train(
        ranks,
        world,
        *words,
        folder='b',
        flags=('--max-restarts=1',),
        fault=f'kill:rank={world - 1},step=9,attempt=0',
    )
    assert starts(killed).count('none step 0') == world
    assert starts(killed).count('memory step 8') == world
    assert len(starts(killed)) == 2 * world
    assert ends(killed) == ends(undisturbed)
    assert len({line.split()[3] for line in ends(killed) if ' hash ' in line}) == 1


@pytest.mark.parametrize(('words', 'best'), [(('async=1',), 16), ((), -1)])
def test_maybe_save_reports_the_steps(ranks, words, best):
    """Unlike save(), since the training sends no heartbeats itself."""
    train(ranks, 2, *words, flags=(f'--log-dir={ranks.folder / "logs"}',)).well()
    events = events_of_run(ranks.folder / 'logs')
    assert [event['best_step'] for event in events if event['event'] == 'goodput'][-1] == best


def test_state_of_a_communication_hook_continues(ranks):
    words = ('hook=power_sgd', 'optimizer=adamw')
    undisturbed = train(ranks, 2, *words, folder='a')
    fault = 'kill:rank=1,step=9,attempt=0'
    killed = train(ranks, 2, *words, folder='b', flags=('--max-restarts=1',), fault=fault)
    assert starts(killed).count('memory step 8') == 2
    assert ends(killed) == ends(undisturbed)
    assert ends(killed) != ends(train(ranks, 2, 'optimizer=adamw', folder='c'))


def test_ranks_that_drift_apart_are_reported_once(ranks):
    job = ranks.case('snapshot', 2, 'snapshot_drifts').well()
    (line,) = [line for line in job.err.splitlines() if 'not the same on ranks' in line]
    assert "parameter '1.weight'" in line
    assert 'ranks 0 and 1' in line
    # Rank 0 has added 0 to it.
    saved = ranks.folder / 'drifts' / 'step-9' / 'model.pt'
    assert values_of(ranks, saved, '1.weight') == ['1.0']


def test_damaged_copy_in_memory_leaves_the_older_one(ranks):
    job = ranks.case('snapshot', 2, 'snapshot_damaged_memory', flags=('--max-restarts=1',)).well()
    lines = [line for line in job.lines('rank') if 'none' not in line]
    assert lines == [f'rank {rank} from memory step 1 value 1' for rank in range(2)]


@pytest.mark.parametrize('optimizer', ['adam', 'adagrad', 'rmsprop'])
def test_every_optimizer_continues(ranks, optimizer):
    whole = train(ranks, 1, f'optimizer={optimizer}', 'epochs=4', folder='a')
    train(ranks, 1, f'optimizer={optimizer}', 'epochs=2', folder='b').well()
    rest = train(ranks, 1, f'optimizer={optimizer}', 'epochs=4', folder='b')
    assert starts(rest) == ['disk step 8']
    assert ends(rest) == ends(whole)


@pytest.mark.parametrize('world', [1, 2])
def test_single_file_continues_too(ranks, world):
    whole = train(ranks, world, 'file=a.pt')
    train(ranks, world, 'epochs=1', 'file=b.pt').well()
    rest = train(ranks, world, 'file=b.pt')
    assert starts(rest) == ['disk step 4'] * world
    assert ends(rest) == ends(whole)


def test_written_files_are_not_kept_in_memory(ranks):
    lines = ranks.case('snapshot', 2, 'snapshot_sent').well().lines('rank')
    assert lines == [f'rank {rank} step 2 whole lean' for rank in range(2)]


@pytest.mark.parametrize('flags', [(), ('--snapshot-dir=launchers',)], ids=['', 'launchers'])
def test_snapshots_in_several_folders_continue_separately(ranks, flags):
    job = ranks.case('snapshot', 2, 'snapshot_pair', flags=('--max-restarts=1', *flags)).well()
    lines = [line for line in job.lines('rank') if ' 5 ' in line]
    for rank in range(2):
        assert f'rank {rank} first memory 5 1 1' in lines
        assert f'rank {rank} second disk 5 2 2' in lines


def test_within_a_training_epoch(ranks):
    whole = train(ranks, 2, 'every=3', folder='a')
    killed = train(
        ranks, 2, 'every=3', folder='b', flags=('--max-restarts=1',), fault='kill:rank=0,step=7'
    )
    assert killed.code != 0 or 'step 6' in starts(killed)[0]
    assert ends(train(ranks, 2, 'every=3', folder='b')) == ends(whole)


def test_saves_in_the_background(ranks):
    whole = train(ranks, 2, 'async=1', folder='a')
    train(ranks, 2, 'async=1', 'epochs=2', folder='b').well()
    newest = steps_in(ranks.folder / 'b')[-1]
    rest = train(ranks, 2, 'async=1', folder='b')
    assert starts(rest) == [f'disk step {newest}'] * 2
    assert ends(rest) == ends(whole)


def test_folder_keeps_three_and_describes_them(ranks):
    train(ranks, 2, 'epochs=3').well()
    folder = ranks.folder / 'snapshots'
    assert steps_in(folder) == [8, 10, 12]
    manifest = json.loads((folder / 'step-12' / 'manifest.json').read_text())
    assert (manifest['step'], manifest['world_size'], manifest['epoch']) == (12, 2, 2)
    names = [entry['name'] for entry in manifest['files']]
    assert sorted(names) == ['model.pt', 'optim.pt', 'rank-0.pt', 'rank-1.pt']
    assert [p.name for p in folder.iterdir() if not p.name.startswith('step-')] == []


def test_other_number_of_ranks(ranks):
    train(ranks, 2, 'epochs=2').well()
    grown = train(ranks, 4, 'epochs=3')
    assert starts(grown) == ['disk step 8'] * 4
    assert len({line.split()[3] for line in ends(grown) if ' hash ' in line}) == 1
    assert grown.err.count('by another number of ranks than 4, by 2') == 1
    assert "nothing of ranks 2 to 3, so their own 'rng', 'seen' begin anew" in grown.err
    assert len({line for line in ends(grown) if ' draws ' in line}) == 4
    shrunk = train(ranks, 1, 'epochs=4')
    assert starts(shrunk) == ['disk step 12']
    lost = "no rank takes over what ranks 1 to 3 had of their own: 'seen'"
    assert lost in shrunk.well().err


def change(path):
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)


def test_damaged_snapshot_is_skipped(ranks):
    train(ranks, 2, 'epochs=2').well()
    path = ranks.folder / 'snapshots' / 'step-8' / 'model.pt'
    path.write_bytes(path.read_bytes()[:-200])
    cut = train(ranks, 2, 'epochs=3')
    assert starts(cut) == ['disk step 6'] * 2
    assert cut.well().err.count('fell back one to step-6') == 1

    change(ranks.folder / 'snapshots' / 'step-12' / 'optim.pt')
    changed = train(ranks, 2, 'epochs=3')
    assert starts(changed) == ['disk step 10'] * 2
    assert changed.well().err.count('fell back one to step-10') == 1


def test_abandoned_snapshot_is_not_chosen_again(ranks):
    train(ranks, 2, 'epochs=2').well()
    change(ranks.folder / 'snapshots' / 'step-8' / 'optim.pt')
    flags = ('--max-restarts=1', '--snapshot-dir=snapshots')
    fault = 'kill:rank=1,step=7,attempt=0'
    job = train(ranks, 2, 'epochs=3', 'memory=0', flags=flags, fault=fault)
    assert starts(job.well()) == ['disk step 6'] * 4
    assert job.err.count('fell back one to step-6') == 1
    assert job.err.count('the snapshot of step 8 could not be used') == 1


def test_launchers_choice_comes_first(ranks):
    train(ranks, 1, 'epochs=2').well()
    chosen = {'CPPRUN_RESUME_FROM': str(ranks.folder / 'snapshots' / 'step-4')}
    words = ('snapshot_train', 'dir=snapshots', 'epochs=2')
    job = ranks.lone_case('snapshot', *words, env=chosen).well()
    assert starts(job) == ['disk step 4']


def test_a_program_under_torchrun_resumes_from_disk(ranks):
    whole = train(ranks, 2, folder='a')
    torchrun = (PYTHON, '-m', 'torch.distributed.run', '--standalone', '--nproc_per_node=2')
    case = (BIN / 'sdk_snapshot_cases', 'snapshot_train', 'dir=b')
    first = ranks.run(*torchrun, '--no-python', *case, 'epochs=2').well()
    assert starts(first) == ['none step 0'] * 2
    rest = ranks.run(*torchrun, '--no-python', *case)
    assert starts(rest) == ['disk step 8'] * 2
    assert ends(rest) == ends(whole)


def test_bad_disk_does_not_stop_the_training(ranks):
    (ranks.folder / 'blocked').write_text('a file where a folder belongs')
    whole = train(ranks, 2, folder='a')
    words = ('prints=1', 'mend=9', f'in_the_way={ranks.folder}/blocked')
    job = train(ranks, 2, *words, folder='blocked')
    reports = [line for line in job.err.splitlines() if 'was not written' in line]
    assert len(reports) == 1
    assert 'blocked' in reports[0]
    assert job.err.count('snapshots are written again, from step 10 on') == 1
    assert ends(job) == ends(whole)
    saved = [line.split()[3] for line in job.lines('rank 0 saved')]
    assert sorted(saved) == ['0'] * 4 + ['1'] * 4
    assert steps_in(ranks.folder / 'blocked') == [12, 14, 16]


def test_added_layer_does_not_shift_the_momentum(ranks):
    train(ranks, 1, 'epochs=2').well()
    refused = train(ranks, 1, 'epochs=3', 'more=1')
    assert refused.code != 0
    assert 'missing: between.weight, between.bias' in refused.err
    job = train(ranks, 1, 'epochs=3', 'more=1', 'strict=0')
    assert starts(job.well()) == ['disk step 8']


def test_without_memory_the_disk_is_used(ranks):
    words = ('memory=0', 'epochs=3')
    fault = 'kill:rank=1,step=9,attempt=0'
    killed = train(ranks, 2, *words, flags=('--max-restarts=1',), fault=fault)
    assert starts(killed.well()).count('disk step 8') == 2


def test_training_pauses_for_one_copy(ranks):
    """New memory at each save would cost ten times as much."""
    tries = [ranks.lone_case('snapshot', 'snapshot_cost', 256).well().out.split() for _ in range(3)]
    pauses = [(float(words[3]), float(words[5])) for words in tries]
    assert any(pause < 3 * copy + 20 for pause, copy in pauses), pauses


@pytest.mark.parametrize('apart', [0, 1])
def test_parameters_that_differ_between_ranks_are_reported(ranks, apart):
    job = ranks.case('snapshot', 3, 'snapshot_differs', f'apart={apart}').well()
    warning = "parameter '1.weight' is not the same on ranks 0 and 2"
    assert job.err.count(warning) == (not apart)
    if not apart:  # all of it from rank 0
        for step in (1, 2):
            saved = ranks.folder / 'together' / f'step-{step}' / 'model.pt'
            assert values_of(ranks, saved, '1.weight') == ['1.0']
