"""Subgroups and device meshes as in Python; lists of objects between two ranks."""


def test_groups_equal_pythons(ranks):
    ours = ranks.case('dist', 4, 'mesh').well().lines()
    pythons = ranks.twin(4, 'mesh.py').well().lines()
    assert len(ours) == 4 * 6
    assert ours == pythons


def test_wrong_arguments_are_refused(ranks):
    lines = ranks.case('dist', 2, 'mesh_refusals').well().lines('rank 0')
    for text in (
        'the world size 2 must be divisible by group_size, which is 3',
        'rank 1 stands in two lists',
        'the product of its shape must be the world size, 2',
        '2 names for 1 dimensions',
        "the device type is 'tpu'",
        "no dimension is called 'c'",
        'it has no dimension 2, only 2',
        'it has several dimensions',
    ):
        assert any(text in line for line in lines), text


def test_lists_of_objects(ranks):
    lines = ranks.case('dist', 2, 'object_lists').well().lines()
    assert 'from 1 one 41943040' in lines
    assert 'from 1 10' in lines
    assert 'from 0 back' in lines
    (error,) = [line for line in lines if line.startswith('rank 0 Dist')]
    assert error.startswith('rank 0 DistMismatchError')
    assert 'the object of rank 1' in error
    assert 'wanted is a str, it is of the type int' in error
