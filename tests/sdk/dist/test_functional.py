"""Collectives with gradients: values and (second) gradients equal Python's, bit for bit."""

import pytest
from launches import BIN


@pytest.mark.parametrize('world', [2, 3])
def test_gradients_equal_pythons(ranks, world):
    ours = ranks.case('dist', world, 'functional').well().lines()
    pythons = ranks.twin(world, 'functional.py').well().lines()
    assert len(ours) > 20 * world
    assert ours == pythons


def test_averages_and_groups_of_any_ranks(ranks):
    lines = ranks.case('dist', 3, 'functional_beyond').well().lines()
    assert lines[:3] == ['gradient 0.000000', 'gradient 1.000000', 'gradient 2.000000']
    assert lines[3:] == ['pair 4.000000', 'pair 8.000000']


@pytest.mark.parametrize('world', [1, 2, 3])
def test_contrastive_training_equals_pythons(ranks, world):
    ours = ranks.cpprun(world, BIN / 'ex_contrastive', '--steps=8').well()
    pythons = ranks.twin(world, 'contrastive.py', 8).well()
    assert ours.lines('step') == pythons.lines('step')
    assert len(ours.lines('step')) == 8 * world
    assert ours.lines('weights') == pythons.lines('weights')
    assert len(ours.lines('weights')) == world
