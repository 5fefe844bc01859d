"""DataLoader gives the batches of Python's DataLoader."""

import pytest


@pytest.mark.parametrize('workers', [0, 2])
def test_batches_equal_pythons(ranks, workers):
    ours = ranks.lone_case('data', 'data_loader', workers).well().out.splitlines()
    pythons = ranks.lone_twin('data_loader.py').well().out.splitlines()
    assert len(ours) > 40
    assert ours == pythons
