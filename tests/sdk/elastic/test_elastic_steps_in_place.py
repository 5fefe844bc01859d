"""cpprun::ElasticSteps with real trainings: loops that stay in place when other workers fail, and
compute what they compute without a failure. The program is steps_case.cpp. Python counterpart:
tests/integration/test_elastic_steps.py.
"""

import re

import pytest
from elastic_jobs import (
    Undisturbed,
    at_step,
    beginnings,
    kill_again_and_again,
    parameters,
    processes,
    replaced,
    replaced_after_kill,
)
from launches import BIN, ROOT, kill


def loop(jobs, *words, n=4, **options):
    return jobs.cases(n, 'elastic_steps', *words, **options)


undisturbed = Undisturbed(loop)


@pytest.mark.parametrize(
    ('n', 'victims'), [(2, (1,)), (2, (0,)), (4, (2,)), (4, (0,)), (4, (0, 1, 3))]
)
def test_the_loop_of_survivors_stays(jobs, n, victims):
    expected = undisturbed(jobs, n)
    job = loop(jobs, 'sleep=20', n=n)
    before = processes(job, 1, n)
    at_step(job, 10)
    for rank in victims:
        kill(before[rank])
    assert replaced(before, processes(job, 2, n)) == set(victims)
    assert parameters(job, n) == expected
    second = set(beginnings(job)[n:])
    assert len(second) == 1 and min(second) >= 9


def test_each_rank_takes_its_own_samples(jobs):
    """The sampler is made before the process group. If ranks had the same samples, the means of
    their gradients would not depend on the number of ranks."""
    assert undisturbed(jobs, 2) != undisturbed(jobs, 4)


def test_a_communication_hook_stays(jobs):
    expected = undisturbed(jobs, 2, 'hook=fp16')
    assert expected != undisturbed(jobs, 2)
    job = loop(jobs, 'hook=fp16', 'sleep=20', n=2)
    before = processes(job, 1, 2)
    at_step(job, 10)
    kill(before[1])
    assert replaced(before, processes(job, 2, 2)) == {1}
    assert parameters(job, 2) == expected


@pytest.mark.parametrize('optimizer', ['adamw', 'sgd'])
@pytest.mark.parametrize('kind', ['backward', 'updated'])
def test_worker_that_dies_inside_a_step(jobs, kind, optimizer):
    """Inside of backward, some of the others have completed the step and some have not."""
    expected = undisturbed(jobs, 4, f'optimizer={optimizer}')
    job = loop(jobs, f'optimizer={optimizer}', f'fault={kind}:1')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


def test_collective_behind_now(jobs):
    expected = undisturbed(jobs)
    job = loop(jobs, 'fault=updated:1', 'late=now')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected
    assert set(beginnings(job)[4:]) in ({10}, {11})


@pytest.mark.parametrize('optimizer', ['adamw', 'sgd'])
def test_parameters_of_no_whole_step_are_not_used(jobs, optimizer):
    """All wait in a collective between the optimizer's step and the commit, so the only whole state
    is that of the new worker."""
    expected = undisturbed(jobs, 4, f'optimizer={optimizer}')
    job = loop(jobs, f'optimizer={optimizer}', 'fault=updated:1', 'late=in')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert 'were interrupted between the optimizer step and the commit' in job.output
    assert beginnings(job) == [0] * 8
    assert parameters(job) == expected


def test_killed_again_and_again(jobs):
    expected = undisturbed(jobs)
    job = loop(jobs, 'sleep=20')
    kill_again_and_again(job)
    assert parameters(job) == expected


def test_donor_that_dies_while_it_gives_its_state_away(jobs):
    expected = undisturbed(jobs)
    job = loop(jobs, 'fault=donor', 'sleep=20')
    assert replaced_after_kill(job, 3) == {0, 2}
    assert 'dies as the donor' in job.output
    assert parameters(job) == expected


def test_snapshot_of_each_round(jobs):
    """One worker fails: its successor gets the state. All fail: they resume from the snapshot."""
    expected = undisturbed(jobs, 2)
    flags = ('--snapshot-dir=snapshots',)
    job = loop(jobs, 'snapshot=yes', 'sleep=20', n=2, flags=flags)
    first = processes(job, 1, 2)
    at_step(job, 8)
    kill(first[1])
    second = processes(job, 2, 2)
    assert replaced(first, second) == {1}
    at_step(job, 18, round=2)
    for pid in second.values():
        kill(pid)
    assert replaced(second, processes(job, 3, 2)) == {0, 1}
    assert parameters(job, 2) == expected
    starts = beginnings(job)
    assert min(starts[2:4]) >= 7 and min(starts[4:]) >= 10


def test_body_without_commit_is_refused(jobs):
    job = loop(jobs, 'fault=body:1', restarts=0)
    assert job.done() == 1
    assert 'the body of the loop must be a call of commit()' in job.output


def test_loop_that_is_used_twice_is_refused(jobs):
    job = jobs.cases(2, 'elastic_steps_twice')
    assert job.done() == 0, job.output
    assert len(re.findall('a second loop is refused: elastic: another', job.output)) == 2
    assert len(re.findall('a second commit is refused', job.output)) == 4
    assert len(re.findall('a second walk is refused', job.output)) == 2


def test_under_torchrun_nothing_is_repeated(jobs):
    torchrun = (ROOT / '.venv' / 'bin' / 'torchrun', '--standalone', '--nproc-per-node=2')
    program = (BIN / 'sdk_elastic_cases', 'elastic_steps', 'steps=5')
    job = jobs.start(*torchrun, '--no-python', *program, env={'OMP_NUM_THREADS': '1'})
    assert job.done() == 0, job.output
    assert len(re.findall('call of process', job.output)) == 2
    assert len(set(re.findall(r'parameters (\w+)', job.output))) == 1
