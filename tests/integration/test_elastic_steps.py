"""elastic.steps() with real trainings: loops that stay in place when other workers fail, and
compute what they compute without a failure. The worker is tests/support/elastic_steps_worker.py.
"""

import re

import pytest
from conftest import kill
from launches import ROOT
from elastic_jobs import (
    Undisturbed,
    all_at_step,
    at_step,
    beginnings,
    kill_again_and_again,
    parameters,
    processes,
    replaced,
)
from test_elastic import train
from torch_python import needs_torch

pytestmark = needs_torch

WORKER = ROOT / 'tests' / 'support' / 'elastic_steps_worker.py'


def loop(jobs, *args, **options):
    return train(jobs, *args, worker=WORKER, **options)


undisturbed = Undisturbed(loop)


@pytest.mark.parametrize('victims', [(2,), (0,), (1, 2), (0, 1, 3)])
def test_the_loop_of_survivors_stays(jobs, victims):
    expected = undisturbed(jobs)
    job = loop(jobs, 'sleep=0.05')
    before = processes(job, 1)
    all_at_step(job, 10)
    for rank in victims:
        kill(before[rank])
    assert replaced(before, processes(job, 2)) == set(victims)
    assert parameters(job) == expected
    first = set(beginnings(job)[4:])
    assert len(first) == 1 and min(first) >= 10


@pytest.mark.parametrize('kind', ['backward', 'updated'])
def test_worker_that_dies_inside_a_step(jobs, kind):
    """Inside of backward, some of the others have completed the step and some have not."""
    expected = undisturbed(jobs)
    job = loop(jobs, f'fault={kind}:1', 'sleep=0.02')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


def test_a_communication_hook_stays(jobs):
    expected = undisturbed(jobs, 4, 'hook=fp16')
    assert expected != undisturbed(jobs)
    job = loop(jobs, 'hook=fp16', 'sleep=0.05')
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[1])
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


def test_collective_behind_now(jobs):
    expected = undisturbed(jobs)
    job = loop(jobs, 'fault=updated:1', 'late=now', 'sleep=0.02')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


def test_parameters_of_no_whole_step_are_not_used(jobs):
    """All wait in a collective between the optimizer's step and the commit, so the only whole state
    is that of the new worker."""
    expected = undisturbed(jobs)
    job = loop(jobs, 'fault=updated:1', 'late=in', 'sleep=0.02')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert 'were interrupted between the optimizer step and the commit' in job.output
    assert beginnings(job) == [0] * 8
    assert parameters(job) == expected


def test_killed_again_and_again(jobs):
    expected = undisturbed(jobs)
    job = loop(jobs, 'sleep=0.05')
    kill_again_and_again(job)
    assert parameters(job) == expected


def test_body_without_the_block_is_refused(jobs):
    job = loop(jobs, 'fault=block:1', 'sleep=0.02', restarts=0)
    assert job.done() == 1
    assert 'must be a block "with elastic.commit():"' in job.output


def test_under_torchrun_nothing_is_repeated(jobs):
    torchrun = (f'{ROOT}/.venv/bin/torchrun', '--standalone', '--nproc-per-node=2')
    job = jobs.start(*torchrun, WORKER, 'steps=5', env={'OMP_NUM_THREADS': '1'})
    assert job.done() == 0, job.output
    assert len(re.findall(r'process \d+ in round', job.output)) == 2
    assert len(set(re.findall(r'parameters (\w+)', job.output))) == 1
