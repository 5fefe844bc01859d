"""In-process restart over NCCL, in Python and C++: survivors stay, and the training ends with the
parameters of one without a failure."""

import shutil

import pytest
from conftest import SUPPORT, needs_nccl
from elastic_jobs import (
    Undisturbed,
    all_at_step,
    beginnings,
    kill_again_and_again,
    parameters,
    processes,
    replaced,
)
from launches import kill

PLACE = ('device=cuda', 'backend=nccl')
FORKED = ('--preload=torch.nn.parallel',)


@pytest.fixture(autouse=True)
def four_ranks():
    needs_nccl(4)


def of_function(jobs, *args, n=4):
    return jobs.train(SUPPORT / 'elastic_worker.py', *PLACE, *args, n=n, flags=FORKED)


def of_loop(jobs, *args, n=4):
    return jobs.train(SUPPORT / 'elastic_steps_worker.py', *PLACE, *args, n=n, flags=FORKED)


def of_cpp(name):
    def train(jobs, *args, n=4):
        in_ms = {'sleep=0.05': 'sleep=50', 'sleep=0.02': 'sleep=20'}
        args = [in_ms.get(arg, arg) for arg in args]
        shutil.rmtree(jobs.folder / 'snapshots', ignore_errors=True)
        return jobs.cases(name, *PLACE, *args, n=n, flags=('--snapshot-dir=snapshots',))

    train.__name__ = name
    return train


CPP = ('elastic_train', 'elastic_share', 'elastic_steps')
TRAININGS = [of_function, of_loop, *map(of_cpp, CPP)]
undisturbed = {train: Undisturbed(train) for train in TRAININGS}
trainings = pytest.mark.parametrize('train', TRAININGS)


@trainings
@pytest.mark.parametrize('victims', [(2,), (0,), (0, 1, 3)])
def test_only_killed_workers_are_replaced(jobs, train, victims):
    expected = undisturbed[train](jobs)
    job = train(jobs, 'sleep=0.05')
    before = processes(job, 1)
    all_at_step(job, 10)
    for rank in victims:
        kill(before[rank])
    assert replaced(before, processes(job, 2)) == set(victims), job.output
    assert parameters(job) == expected
    first = set(beginnings(job)[4:])
    assert len(first) == 1
    assert min(first) >= (5 if train.__name__ == 'elastic_train' else 10)  # of a save, or a step


@trainings
def test_worker_that_dies_inside_of_backward(jobs, train):
    """The all-reduce of the step is on the GPUs of the others, and never ends by itself."""
    expected = undisturbed[train](jobs)
    job = train(jobs, 'fault=backward:1', 'sleep=0.02')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}, job.output
    assert parameters(job) == expected


@trainings
def test_three_failures(jobs, train):
    expected = undisturbed[train](jobs)
    job = train(jobs, 'sleep=0.05')
    kill_again_and_again(job)
    assert parameters(job) == expected
