"""C++ and Python ranks form one Gloo group, with either as rank 0."""

import pytest
from launches import BIN
from sdk_ranks import TWIN
from test_init import sums

CASES = BIN / 'sdk_dist_cases'


def mixed(ranks, n, python_ranks, case, *, twin='form_group.py', flags=()):
    """`case` on n ranks, in Python on those of `python_ranks` (as a shell pattern)."""
    script = (
        f'case $RANK in {python_ranks}) exec {TWIN}/{twin} {case};; '
        f'*) exec {CASES} {case};; esac'
    )
    return ranks.cpprun(n, 'bash', '-c', script, flags=flags).well().lines()


@pytest.mark.parametrize('flags', [(), ('--worker-store=agent',)])
@pytest.mark.parametrize('python_ranks', ['0', '1'])
def test_python_and_cpp_form_a_group_of_two(ranks, python_ranks, flags):
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


@pytest.mark.parametrize('python_rank', [0, 1])
def test_objects_pass_between_python_and_cpp(ranks, python_rank):
    lines = mixed(ranks, 2, python_rank, 'objects', twin='objects.py')
    (typed,) = [line for line in lines if ' typed ' in line]
    assert typed.endswith(
        'typed [true,-7,18446744073709551615,0.5,"gr\u00fc\u00df",2,[1,[]],[1,"x"],"int",15,true,3]'
    )
    gathered = '[{"rank":0},{"rank":1}]'
    assert [line for line in lines if ' typed ' not in line] == sorted(
        f'rank {rank} {text}'
        for rank in (0, 1)
        for text in (
            f'gather {gathered}',
            'gather []',
            'broadcast [0,{"from":0},"x"]',
            'broadcast [1,{"from":1},"x"]',
            'scatter [0,0]' if rank == 0 else 'scatter [0,1,1]',
            'scatter [1,0]' if rank == 0 else 'scatter [1,1,1]',
            'list [null,2,"one"]' if rank == 0 else 'list ["one",2,null]',
        )
    )


@pytest.mark.parametrize('python_rank', [0, 1])
def test_objects_that_cpp_has_no_type_for(ranks, python_rank):
    lines = mixed(ranks, 2, python_rank, 'foreign_objects', twin='objects.py')
    errors = [line for line in lines if 'DistMismatchError' in line]
    assert len(errors) == 4
    assert all(f'the object of rank {python_rank}: malformed object' in line for line in errors)
    for name in ('names datetime.date', 'names collections.deque', 'has a set', 'has a set'):
        errors.remove(next(line for line in errors if name in line))
    assert f'rank {1 - python_rank} well [0,1]' in lines
