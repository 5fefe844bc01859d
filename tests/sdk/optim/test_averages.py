"""Running averages of a model equal Python's, to the last digit."""


def test_numbers_equal_pythons(ranks):
    ours = ranks.lone_case('optim', 'averages').well().out.splitlines()
    pythons = ranks.lone_twin('averages.py').well().out.splitlines()
    assert len(ours) > 100
    assert ours == pythons
