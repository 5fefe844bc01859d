"""cpprun_worker.DistributedSampler: torch's order, and what torch's cannot do: resume within an
epoch, also in a world of another size."""

import collections
import itertools
import pathlib
import random
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / 'worker_sdk' / 'python'))
torch = pytest.importorskip('torch')

from cpprun_worker import DistributedSampler, Snapshot  # noqa: E402
from torch.utils.data import DataLoader  # noqa: E402
from torch.utils.data import DistributedSampler as Theirs  # noqa: E402


def samplers(size, world, **options):
    return [DistributedSampler(range(size), world, rank, **options) for rank in range(world)]


def same_state(found):
    states = [each.state_dict() for each in found]
    assert all(state == states[0] for state in states)
    return states[0]


def test_each_pass_is_torchs():
    cases = itertools.product(range(1, 25), range(1, 9), (False, True), (False, True))
    for size, world, shuffle, drop_last in cases:
        for rank in range(world):
            words = (range(size), world, rank, shuffle, 3, drop_last)
            ours, theirs = DistributedSampler(*words), Theirs(*words)
            for epoch in (0, 2):
                ours.set_epoch(epoch)
                theirs.set_epoch(epoch)
                assert list(ours) == list(theirs), (words, epoch)
            assert len(ours) == len(theirs)


def take(found, batch, batches):
    for _ in range(batches):
        taken = [each.next(batch) for each in found]
        if taken[0] is None:
            return
        yield from itertools.chain.from_iterable(taken)


def test_an_epoch_in_worlds_of_several_sizes_uses_each_sample_once():
    draw = random.Random(7)
    for _ in range(300):
        size, drop_last, state = draw.randrange(200), draw.random() < 0.3, {'consumed': 0}
        used, padding = collections.Counter(), 0
        for part in range(4):
            world, batch = draw.randint(1, 8), draw.randint(1, 9)
            found = samplers(size, world, seed=99 if part else 5, drop_last=drop_last)
            for each in found:
                if part:
                    each.load_state_dict(state)
                each.set_epoch(3)
            taken = list(take(found, batch, 1000 if part == 3 else draw.randrange(6)))
            used.update(taken)
            padding += max(0, len(taken) - (size - state['consumed']))
            state = same_state(found)
        left = size - state['consumed']
        assert left == 0 or drop_last and left < world
        assert len(used) == state['consumed'] and used.total() == state['consumed'] + padding
        assert state['seed'] == 5


def test_bind_divides_what_is_left():
    survivors = samplers(96, 4)
    used = [index for each in survivors for index in each.next(8)]
    survivors = survivors[1:3]
    [each.bind(2, rank) for rank, each in enumerate(survivors)]
    assert same_state(survivors)['consumed'] == 32
    used += take(survivors, 8, 1000)
    assert sorted(used) == list(range(96))


def test_a_loader_continues_within_the_epoch():
    data = torch.arange(40)
    sampler = DistributedSampler(data, 2, 0)
    sampler.set_epoch(1)
    loader = DataLoader(data, batch_size=4, sampler=sampler)
    whole = [batch.tolist() for batch in loader]
    sampler.set_epoch(1)
    for _ in zip(range(2), loader):
        state = sampler.state_dict()
    again = DistributedSampler(data, 2, 0)
    again.load_state_dict(state)
    again.set_epoch(1)
    rest = [batch.tolist() for batch in DataLoader(data, batch_size=4, sampler=again)]
    assert state['consumed'] == 16 and rest == whole[2:]


def test_a_snapshot_keeps_the_position(tmp_path):
    """Of two ranks; one goes on."""
    used = []

    def made(sampler):
        model = torch.nn.Linear(2, 2)
        return Snapshot(tmp_path, model=model, extra={'sampler': sampler})

    both = samplers(40, 2)
    used += take(both, 4, 3)
    assert made(both[0]).save(3)
    alone = DistributedSampler(range(40), 1, 0)
    assert made(alone).resume() == 3
    used += take([alone], 4, 1000)
    assert sorted(used) == list(range(40))


def test_a_loader_that_is_ahead_is_counted_by_marks():
    data = torch.arange(40)
    sampler = DistributedSampler(data, 2, 0)
    batches = iter(DataLoader(data, batch_size=4, sampler=sampler, num_workers=1))
    next(batches)
    sampler.mark_consumed(4)
    assert sampler.state_dict()['consumed'] == 8
    sampler.set_epoch(1)
    next(iter(DataLoader(data, batch_size=4, sampler=sampler, num_workers=1)))
    assert sampler.state_dict()['consumed'] == 0, 'nothing of this epoch was used yet'
    with pytest.raises(ValueError, match='each once'):
        sampler.mark_consumed(100)


@pytest.mark.parametrize('options', [{}, {'drop_last': True}, {'persistent_workers': True}])
def test_a_loader_with_processes_is_ahead_and_what_was_not_used_does_not_count(options):
    data = torch.arange(42)
    sampler = DistributedSampler(data, 2, 0)
    loader = DataLoader(data, batch_size=4, sampler=sampler, num_workers=2, **options)
    for epoch in (0, 1):
        sampler.set_epoch(epoch)
        for number, batch in enumerate(loader, 1):
            used = min(42, (number - 1) * 8 + 2 * len(batch))
            if 'drop_last' in options and number == 5:
                used = 42  # the rest is dropped
            assert sampler.state_dict()['consumed'] == used
        assert sampler.state_dict()['consumed'] == 42


def test_a_pass_without_set_epoch_warns():
    sampler = DistributedSampler(range(8), 2, 1)
    first = list(sampler)
    with pytest.warns(UserWarning, match='set_epoch'):
        assert list(sampler) == first
    assert list(DistributedSampler(range(8), 2, 1, shuffle=False)) == [1, 3, 5, 7]


def test_without_a_group_the_launchers_numbers_count(monkeypatch):
    assert DistributedSampler(range(8)).num_replicas == 1
    monkeypatch.setenv('WORLD_SIZE', '4')
    monkeypatch.setenv('RANK', '3')
    sampler = DistributedSampler(range(8))
    assert (sampler.num_replicas, sampler.rank) == (4, 3)


@pytest.mark.parametrize(
    ('words', 'text'),
    [
        ({'num_replicas': 2, 'rank': 2}, 'rank is 2; wanted is 0 to 1'),
        ({'num_replicas': 2, 'rank': -1}, 'rank is -1'),
    ],
)
def test_bad_arguments(words, text):
    with pytest.raises(ValueError, match=text):
        DistributedSampler(range(8), **words)


@pytest.mark.parametrize(
    ('change', 'text'),
    [
        ({'size': 9}, 'a data set of 9 samples, this one has 8'),
        ({'shuffle': False}, 'shuffle=False'),
        ({'consumed': 9}, '9 of 8 samples'),
    ],
)
def test_a_state_of_other_data_is_refused(change, text):
    sampler = DistributedSampler(range(8), 1, 0)
    with pytest.raises(ValueError, match=text):
        sampler.load_state_dict({**sampler.state_dict(), **change})
