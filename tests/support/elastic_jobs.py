"""What the programs of tests of in-process restart print, Python's and C++'s alike."""

import re

from launches import kill
from shared_results import shared


def processes(job, round, n=4):
    """Process ids by rank, of a round that all ranks have begun."""
    pattern = rf'\[rank (\d+)\] call of process (\d+) in round {round}\b'
    return {int(rank): int(pid) for rank, pid in job.wait_for_all(pattern, n)}


def at_step(job, step, round=1):
    """Rank 0 has completed that step. Others may be one step behind."""
    job.wait_for(rf'step {step} of round {round}$')


def all_at_step(job, step, round=1):
    """All ranks have completed that step: rank 0 needs the others' gradients for the next one."""
    at_step(job, step + 1, round)


def parameters(job, n=4):
    assert job.done() == 0, job.output
    found = re.findall(r'parameters (\w+)', job.output)
    assert len(found) == n and len(set(found)) == 1, job.output
    return found[0]


def rollbacks(job):
    """The counts of all ranks that have reached the end."""
    return [int(count) for count in re.findall(r'rollbacks (\d+)$', job.output, re.MULTILINE)]


def replaced(before, after):
    return {rank for rank in before if before[rank] != after[rank]}


def replaced_after_kill(job, round):
    """Kills rank 2 at step 10. The ranks whose processes in that later round are others."""
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[2])
    return replaced(before, processes(job, round))


def beginnings(job):
    """The steps at which ranks began, in all rounds."""
    return [int(step) for step in re.findall(r'from (\d+)$', job.output, re.MULTILINE)]


def kill_again_and_again(job, ranks=(3, 0, 3), n=4):
    """Kills one of n ranks in each of some rounds; only that rank is replaced."""
    now = processes(job, 1, n)
    for number, rank in enumerate(ranks, start=1):
        at_step(job, 6 * number, round=number)
        kill(now[rank])
        before, now = now, processes(job, number + 1, n)
        assert replaced(before, now) == {rank}, job.output


class Undisturbed:
    """The parameters after a training without a failure, which runs once for the same arguments.
    `train(jobs, *args, n=n)` starts it.
    """

    def __init__(self, train):
        self.train = train

    def __call__(self, jobs, n=4, *args):
        key = (self.train.__module__, self.train.__qualname__, n, *args)
        return shared(jobs.folder, key, lambda: parameters(self.train(jobs, *args, n=n), n))
