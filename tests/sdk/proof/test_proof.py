"""Runs whose workers are killed at random end with exactly the parameters of an undisturbed run.

Two runs of each program, with CPPRUN_ALL a hundred; kills.py alone prints a table.
"""

import random
import re

import pytest
from kills import PROGRAMS, Killer, Proof, command, finish
from launches import BIN, Launches
from long_tests import RUN_LONG
from snapshot_folders import newest_step

RESUMED = r'resumed from \w+ at step (\d+)'
SEEDS = 100 if RUN_LONG else 2


@pytest.fixture(scope='module')
def proof(tmp_path_factory):
    return Proof(tmp_path_factory.mktemp('proof'))


@pytest.mark.parametrize('name', PROGRAMS)
@pytest.mark.parametrize('seed', range(SEEDS))
def test_killed_runs_end_alike(proof, name, seed):
    if not (BIN / PROGRAMS[name].name).exists():
        pytest.skip(f'{PROGRAMS[name].name} is not built')
    assert proof.check(name, seed).is_equal


def test_twenty_kills_lose_no_committed_step(tmp_path):
    """The restart loop: no restart goes back behind an existing snapshot."""
    program = PROGRAMS['sgd']._replace(words=['sgd', 'snapshots', 1200, 5, 10])
    quick = program._replace(words=['sgd', 'undisturbed', 1200, 1000, 0])
    job = Launches(tmp_path)
    expected, _, _ = finish(job, quick, 2)
    running = job.start(*command(program, 2), env={'OMP_NUM_THREADS': '1'})
    chance = random.Random(20)
    committed = []
    for number in range(20):
        # The kill comes after the start that followed the kill before, on any machine.
        running.wait_for_all(RESUMED, number + 1, 120)
        Killer(job, program, chance, 1, 0.5).run()
        committed.append(newest_step(tmp_path / 'snapshots'))
    assert running.done(600) == 0, running.output
    job.close()
    resumed = [int(step) for step in re.findall(RESUMED, running.output)]
    assert resumed == sorted(resumed) and len(resumed) == 21, running.output
    assert all(step >= newest for step, newest in zip(resumed[1:], committed, strict=True))
    assert f'hash={expected}' in running.output
