"""SyncBatchNorm on parts of a batch against plain batch normalisation on the whole of it."""

import pytest
from launches import ROOT
from torch_python import PYTHON

TWINS = ROOT / 'tests' / 'sdk' / 'twins'


def tables(ended):
    """Numbers by their prefix: kind, step, rank and, for parameters, a name."""
    found = {}
    for line in ended.lines():
        words = line.split()
        named = words[0] in ('grad', 'buffer')
        key = ' '.join(words[: 4 if named else 3])
        found[key] = [float(word) for word in words[4 if named else 3 :]]
    return found


@pytest.mark.parametrize(
    'words', [(4, 4), (1, 7), (5, 3, 2), (6, 0, 4), (3, 5, 'cumulative')], ids=str
)
def test_equals_the_joined_batch(ranks, words):
    n = sum(isinstance(word, int) for word in words)
    ours = tables(ranks.case('nn', n, 'sync_batch_norm', *words).well())
    joined = tables(ranks.run(PYTHON, TWINS / 'batch_norm.py', *words).well())
    assert ours.keys() == joined.keys()
    for key, numbers in ours.items():
        scale = 1 + max((abs(number) for number in joined[key]), default=0)
        # A bias before a normalisation has no effect: its gradient is the rounding error of 0.
        # For the others it is a few roundings of float32, since sums have another order.
        near = 1e-4 if key.endswith('first.bias') else 2e-6 * scale
        assert numbers == pytest.approx(joined[key], rel=0, abs=near), key
