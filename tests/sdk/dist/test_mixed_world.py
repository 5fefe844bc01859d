"""C++ and Python ranks form one Gloo group, with either as rank 0."""

import pytest
from conftest import TWIN
from launches import BIN

CASES = BIN / 'sdk_dist_cases'


def mixed(ranks, n, python_ranks, case, *, flags=()):
    """`case` on n ranks, in Python on those of `python_ranks` (as a shell pattern)."""
    script = (
        f'case $RANK in {python_ranks}) exec {TWIN}/form_group.py {case};; '
        f'*) exec {CASES} {case};; esac'
    )
    return ranks.cpprun(n, 'bash', '-c', script, flags=flags).well().lines()


def sums(world):
    total = world * (world + 1) // 2
    return [f'rank {rank} of {world} sum {total}' for rank in range(world)]


@pytest.mark.parametrize('flags', [(), ('--worker-store=agent',)])
@pytest.mark.parametrize('python_ranks', ['0', '1'])
def test_two_ranks(ranks, python_ranks, flags):
    assert mixed(ranks, 2, python_ranks, 'form', flags=flags) == sums(2)


@pytest.mark.parametrize('python_ranks', ['0', '1|2'])
def test_groups_of_three_ranks(ranks, python_ranks):
    lines = mixed(ranks, 3, python_ranks, 'sub_groups')
    assert [line for line in lines if ' of 3 ' in line] == sums(3)
    assert [line for line in lines if 'in group' in line] == [
        'rank 0 in group sum 3',
        'rank 2 in group sum 3',
    ]
    assert [line for line in lines if 'in all' in line] == [
        f'rank {rank} in all sum 6' for rank in range(3)
    ]
