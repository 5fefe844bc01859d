"""DistributedSampler gives every rank Python's order, bit for bit, in each epoch."""

import itertools
import random

import pytest


def grid():
    """Small data sets of every size around the world's, none at all included."""
    for n, world, shuffle, drop_last in itertools.product(
        range(25), range(1, 9), (0, 1), (0, 1)
    ):
        for rank in range(world):
            yield n, world, rank, 3, 2, shuffle, drop_last


def chance(count):
    numbers = random.Random(5)
    for _ in range(count):
        world = numbers.randint(1, 8)
        n = int(2 ** numbers.uniform(0, 12))
        seed = numbers.choice([0, 1, 2**31, 2**32 - 6, numbers.randrange(2**32 - 6)])
        epoch = numbers.choice([0, 1, 2, 5, numbers.randrange(10_000)])
        rank = numbers.randrange(world)
        yield n, world, rank, seed, epoch, numbers.randint(0, 1), numbers.randint(0, 1)


def large():
    for n, world in ((65_536, 3), (100_003, 8), (999_999, 7), (1_000_003, 1), (1_000_003, 8)):
        for drop_last in (0, 1):
            yield n, world, world - 1, 2**32 - 6, 5, 1, drop_last


def test_orders_equal_pythons(ranks):
    cases = [*grid(), *chance(4000), *large()]
    path = ranks.folder / 'cases.txt'
    path.write_text(''.join(' '.join(map(str, case)) + '\n' for case in cases))
    ours = ranks.lone_case('data', 'sampler_orders', path, seconds=240).well().out.splitlines()
    pythons = ranks.lone_twin('sampler_orders.py', path, seconds=240).well().out.splitlines()
    assert len(ours) == len(pythons) == len(cases)
    differing = [case for case, a, b in zip(cases, ours, pythons) if a != b]
    assert not differing, f'{len(differing)} of {len(cases)} differ, the first: {differing[0]}'


@pytest.mark.parametrize(('shuffle', 'warnings'), [(1, 1), (0, 0)])
def test_passes_without_set_epoch_repeat_the_order_as_pythons_do(ranks, shuffle, warnings):
    words = (23, 2, 1, shuffle, 3)
    ours = ranks.lone_case('data', 'sampler_passes', *words).well()
    pythons = ranks.lone_twin('sampler_passes.py', *words).well()
    assert ours.out.splitlines() == pythons.out.splitlines()
    assert len(ours.out.splitlines()[2].split()) == 1 + 12
    assert ours.err.count('call sampler.set_epoch(epoch) before each pass') == warnings
