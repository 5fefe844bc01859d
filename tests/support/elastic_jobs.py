"""What the programs of tests of in-process restart print, Python's and C++'s alike."""

import re


def processes(job, round, n=4):
    """Process ids by rank, of a round that all ranks have begun."""
    pattern = rf'\[rank (\d+)\] call of process (\d+) in round {round}\b'
    return {int(rank): int(pid) for rank, pid in job.wait_for_all(pattern, n)}


def at_step(job, step, round=1):
    job.wait_for(rf'step {step} of round {round}$')


def parameters(job, n=4):
    assert job.done() == 0, job.output
    found = re.findall(r'parameters (\w+)', job.output)
    assert len(found) == n and len(set(found)) == 1, job.output
    return found[0]


def replaced(before, after):
    return {rank for rank in before if before[rank] != after[rank]}
