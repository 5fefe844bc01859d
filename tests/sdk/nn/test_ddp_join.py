"""Uneven inputs: DistributedDataParallel.join compared with Python's, and its early end."""

import pytest

MODES = ['join', 'buckets', 'remaining', 'buffers', 'find_unused', 'no_sync', 'hook']


@pytest.mark.parametrize('n', [2, 3])
def test_results_equal_python(ranks, n):
    ours = ranks.case('nn', n, 'ddp_join', *MODES).well()
    theirs = ranks.twin(n, 'ddp_join.py', *MODES).well()
    for mode in MODES:
        assert len(ours.lines(f'{mode} loss ')) == sum(6 + 4 * rank for rank in range(n))
        assert ours.lines(f'{mode} ') == theirs.lines(f'{mode} ')


def test_all_ranks_end_with_the_same_model(ranks):
    ended = ranks.case('nn', 3, 'ddp_join', 'buffers').well()
    assert len({line.split()[-1] for line in ended.lines('buffers end ')}) == 1


def test_later_gradients_are_means_over_all_ranks(ranks):
    lines = ranks.case('nn', 2, 'ddp_join_after').well().lines()
    modes = ('finished', 'terminated', 'thrown')
    assert lines == [f'{mode} {rank} scale 1.0000' for mode in modes for rank in range(2)]


def test_early_termination_reaches_all(ranks):
    lines = ranks.case('nn', 3, 'ddp_join_terminates').well().lines('terminated ')
    assert [line.split()[1] for line in lines] == ['0', '1', '2']
    assert 'rank 0 has no more data' in lines[0]


def test_error_in_a_destructor_is_kept(ranks):
    ended = ranks.case('nn', 2, 'ddp_join_destructor').well()
    assert ended.lines() == ['kept', 'noticed']
