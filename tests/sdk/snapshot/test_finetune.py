"""Fine-tuning from a published file equals Python's, up to roundings of another order of sums."""

import pytest
from launches import BIN


def losses(ended):
    return {int(line.split()[1]): float(line.split()[3]) for line in ended.well().lines('step')}


@pytest.mark.parametrize('world', [1, 2])
def test_losses_equal_pythons(ranks, world):
    ranks.lone_twin('finetune.py', 'write', ranks.folder).well()
    words = ('--model', ranks.folder / 'model.safetensors', '--heads=4', '--length=16')
    words += ('--tokens', ranks.folder / 'tokens.safetensors', '--batch-size=2', '--epochs=2')
    ours = losses(ranks.cpprun(world, BIN / 'ex_finetune', *words))
    twin = ranks.twin(world, 'finetune.py', 'train', ranks.folder)
    pythons = losses(twin)
    assert len(ours) == 2 * -(-(43 // world + 43 % world) // 2)
    assert ours == pytest.approx(pythons, rel=2e-4)
    assert ours[len(ours) - 1] < 0.8 * ours[0]
    assert len(twin.lines('checked')) == 5
