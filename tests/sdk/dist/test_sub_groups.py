"""Groups within a world of several ranks."""


def test_members_reduce_within_their_group(ranks):
    lines = ranks.case('dist', 3, 'sub_groups').well().lines()
    assert [line for line in lines if 'in group' in line] == [
        'rank 0 in group sum 3',
        'rank 2 in group sum 3',
    ]
    assert sum('in all sum 6' in line for line in lines) == 3


def test_calls_of_non_members_are_refused(ranks):
    lines = ranks.case('dist', 2, 'not_a_member').well().lines()
    assert 'rank 1 is -1 of 1' in lines
    (error,) = (line for line in lines if 'Error' in line)
    assert error.startswith('rank 1 DistStateError')
    assert 'does not belong' in error


def test_ranks_that_name_different_members_are_reported(ranks):
    lines = ranks.case('dist', 4, 'lists_differ', 'timeout=3600000', seconds=15).well().lines()
    assert len(lines) == 3
    assert any('ranks 1, 2' in line for line in lines)
    assert all('ranks 1, 2, 3' in line for line in lines)


def test_a_group_has_its_own_timeout(ranks):
    (line,) = ranks.case('dist', 2, 'own_timeout', seconds=20).well().lines()
    assert line.startswith('rank 0 DistTimeoutError: all_reduce in group 1 (gloo, rank 0 of 2)')
