"""Activation checkpointing equals Python's, and plain training, bit for bit."""

import pytest


@pytest.mark.parametrize('world', [1, 2])
def test_equals_pythons_and_plain_training(ranks, world):
    ours = ranks.case('nn', world, 'checkpoint').well()
    pythons = ranks.twin(world, 'checkpoint.py').well()
    assert ours.lines() == pythons.lines()

    def values(start, kind):
        return [line.split()[-1] for line in ours.lines(f'{start} {kind}')]

    assert values('checkpoint', 'loss') == values('plain', 'loss')
    assert values('checkpoint', 'end') == values('plain', 'end')
    assert values('plain', 'computations') == ['15'] * world
    assert values('checkpoint', 'computations') == ['30'] * world
    assert values('checkpoint cast', 'end') != values('plain', 'end')
