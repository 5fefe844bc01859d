"""Collectives of several tensors in one call: Python's bits, also with Python ranks in one job."""

import pytest
from test_mixed_world import mixed


def test_results_equal_pythons(ranks):
    ours = ranks.case('dist', 3, 'coalesced').well().lines()
    pythons = ranks.twin(3, 'coalesced.py').well().lines()
    assert len(ours) > 3 * 15
    assert ours == pythons


@pytest.mark.parametrize('python_ranks', ['0', '1|2'])
def test_ranks_of_both_languages_in_one_job(ranks, python_ranks):
    lines = mixed(ranks, 3, python_ranks, 'coalesced', twin='coalesced.py')
    assert lines == ranks.case('dist', 3, 'coalesced').well().lines()


def test_calls_beyond_python(ranks):
    lines = ranks.case('dist', 2, 'coalesced_beyond_python').well().lines()
    assert lines.count('ended') == 2
    for rank in range(2):
        assert f'rank {rank} columns 3 3 3 3 3 3; 2 2 2 2;' in lines
        assert f'rank {rank} complex 2 4;' in lines
    own = [line for line in lines if line.startswith('rank 0 Dist')]
    for text in (
        'tensors is an empty list',
        'tensors[1] is int64 [1] on cpu, wanted is float32 on cpu',
        'tensors[1] is float32 [4] with several elements at one place in memory',
        'outputs has 1 tensors, inputs has 2; wanted is the same number',
        'outputs[0] is float32 [3], wanted are 2 times the elements of inputs[0], float32 [2]',
        'inputs[0] is float32 [3], wanted are 2 times the elements of outputs[0], float32 [2]',
        'rank 0: all_reduce_coalesced SUM float32 [1]; rank 1: all_reduce_coalesced SUM',
    ):
        assert any(text in line for line in own), text
