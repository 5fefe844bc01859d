"""Snapshots of a ZeroRedundancyOptimizer: at the same and at other numbers of ranks."""

import pytest
from test_resume import ends, starts, train


@pytest.mark.parametrize('optimizer', ['sgd', 'adamw', 'adagrad'])
def test_killed_rank_costs_nothing(ranks, optimizer):
    words = (f'optimizer={optimizer}',)
    plain = train(ranks, 3, *words, folder='a')
    killed = train(
        ranks,
        3,
        'zero=1',
        *words,
        folder='b',
        flags=('--max-restarts=1',),
        fault='kill:rank=1,step=9,attempt=0',
    )
    assert starts(killed).count('memory step 8') == 3
    assert ends(killed) == ends(plain)


# Numbers of ranks, and whether the optimizer is sharded, before and after.
@pytest.mark.parametrize(
    ('before', 'after'), [((3, 1), (2, 1)), ((2, 1), (3, 1)), ((2, 1), (1, 0)), ((1, 0), (2, 1))]
)
def test_other_numbers_of_ranks_continue(ranks, before, after):
    def both(first, second, folder):
        words = ('optimizer=adamw', 'memory=0')
        train(ranks, first[0], f'zero={first[1]}', 'epochs=2', *words, folder=folder).well()
        return train(ranks, second[0], f'zero={second[1]}', *words, folder=folder)

    sharded = both(before, after, 'a')
    plain = both((before[0], 0), (after[0], 0), 'b')
    assert starts(sharded) == ['disk step 8'] * after[0]
    assert ends(sharded) == ends(plain)
