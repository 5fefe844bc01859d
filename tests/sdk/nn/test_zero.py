"""ZeroRedundancyOptimizer equals Python's and the plain optimizer, bit for bit."""

import pytest


@pytest.mark.parametrize('world', [1, 2, 3])
def test_equals_pythons_and_the_plain_optimizer(ranks, world):
    ours = ranks.case('nn', world, 'zero').well()
    pythons = ranks.twin(world, 'zero.py').well()
    assert ours.lines() == pythons.lines()
    for kind in ('sgd', 'adamw'):
        plain = [line.split()[-1] for line in ours.lines(f'plain-{kind} end')]
        assert [line.split()[-1] for line in ours.lines(f'zero-{kind} end')] == plain
        whole = int(ours.lines(f'plain-{kind} elements')[0].split()[-1])
        for line in ours.lines(f'zero-{kind} elements'):
            assert int(line.split()[-1]) <= whole * (1 / world + 0.05)
