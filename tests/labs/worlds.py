"""Whether two worlds of a job took steps at the same time, from what lab_worker.py has noted."""


def worlds_of(folder):
    """(first step, last step, name) of each world, in the order of their beginning."""
    found = {}
    for path in folder.glob('process-*'):
        name, *times = path.read_text().split()
        first, last = map(float, times)
        known = found.get(name, (first, last))
        found[name] = (min(first, known[0]), max(last, known[1]))
    return sorted((first, last, name) for name, (first, last) in found.items())


def check_one_world_at_a_time(folder, describe):
    worlds = worlds_of(folder)
    assert worlds, describe()
    for earlier, later in zip(worlds, worlds[1:]):
        assert earlier[1] <= later[0], (worlds, describe())
