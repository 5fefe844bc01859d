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
    for segments, computed_again in ((0, 0), (1, 0), (2, 2), (5, 4)):
        assert values(f'row {segments}', 'end') == values('row 0', 'end')
        expected = str(5 * (5 + computed_again))
        assert values(f'row {segments}', 'computations') == [expected] * world
