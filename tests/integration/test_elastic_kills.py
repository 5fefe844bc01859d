"""Many failures of one job with cpprun_worker.elastic: a random rank is killed at a random moment,
again and again."""

import collections
import random
import re
import time

import pytest
from conftest import kill, poll
from elastic_jobs import parameters
from long_tests import RUN_LONG
from test_elastic import events_of, train
from torch_python import needs_torch

RANKS = 4
KILLS = 1000 if RUN_LONG else 10
STEPS = 40 * KILLS  # more than are trained until the last kill
IN_PROCESS = 0.99  # of the recoveries, at least

pytestmark = [
    needs_torch,
    pytest.mark.timeout(7200 if KILLS > 100 else 600),
]


class Follower:
    """Reads the output of a job while it grows."""

    def __init__(self, job):
        self.file = open(job.out_path, encoding='utf-8', errors='replace')
        self.rest = ''
        self.processes = collections.defaultdict(dict)  # by round: {rank: process id}
        self.steps = {}  # by round: the newest step of rank 0
        self.lost = 0  # steps that rank 0 completed and that were trained again

    def read(self):
        *lines, self.rest = (self.rest + self.file.read()).split('\n')
        for line in lines:
            if found := re.search(r'\[rank (\d+)\] call of process (\d+) in round (\d+)', line):
                rank, pid, round = map(int, found.groups())
                self.processes[round][rank] = pid
            elif found := re.search(r'step (\d+) of round (\d+)', line):
                self.steps[int(found[2])] = int(found[1])
            elif (found := re.search(r'\[rank 0\] from (\d+)$', line)) and self.steps:
                self.lost += max(0, max(self.steps.values()) - int(found[1]))

    def newest(self):
        return max(self.steps, default=0)


def kill_again_and_again(job, output, draw):
    """Kills one rank in each round that has made a step. Returns how often rank 0 was it."""
    last, of_rank_0 = 0, 0

    def has_trained():
        output.read()
        assert job.process.poll() is None, job.output[-3000:]
        return output.newest() > last and len(output.processes[output.newest()]) == RANKS

    for number in range(KILLS):
        poll(has_trained, 60, lambda: f'kill {number}: {job.output[-3000:]}')
        last = output.newest()
        victim = draw.randrange(RANKS)
        time.sleep(draw.uniform(0, 0.03))
        kill(output.processes[last][victim])
        of_rank_0 += victim == 0
    return of_rank_0


def test_recoveries_happen_in_the_process(jobs):
    expected = parameters(train(jobs, f'steps={STEPS}'), RANKS)
    job = train(jobs, f'steps={STEPS}', flags=('--log-dir=logs',), restarts=2 * KILLS)
    seed = random.randrange(1_000_000)
    output = Follower(job)
    of_rank_0 = kill_again_and_again(job, output, random.Random(seed))
    assert parameters(job, RANKS) == expected, f'seed {seed}'
    output.read()
    rounds = [event for event in events_of(jobs) if event['event'] == 'round_started'][1:]
    inside = [event for event in rounds if event['kept'] > 0]
    print(f'seed {seed}: {KILLS} kills, {len(rounds)} recoveries, {len(inside)} in the process')
    assert len(rounds) == KILLS, f'seed {seed}'
    assert len(inside) >= IN_PROCESS * KILLS, [event for event in rounds if not event['kept']]
    # Rank 0 may have completed a step that no survivor has.
    assert output.lost <= of_rank_0, f'seed {seed}'
