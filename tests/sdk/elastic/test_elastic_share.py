"""round.share_state() of C++ programs: newcomers get the state of the rank that has completed most
steps. The program is share_case.cpp. Python counterpart: tests/integration/test_elastic.py.
"""

import pytest
from elastic_jobs import (
    Undisturbed,
    all_at_step,
    at_step,
    beginnings,
    kill_again_and_again,
    parameters,
    processes,
    replaced,
    replaced_after_kill,
    rollbacks,
)
from launches import kill


def share(jobs, *words, n=4, **options):
    return jobs.cases(n, 'elastic_share', *words, **options)


undisturbed = Undisturbed(share)


@pytest.mark.parametrize(
    ('n', 'victims'), [(2, (1,)), (2, (0,)), (4, (2,)), (4, (0,)), (4, (0, 1, 3))]
)
def test_newcomers_get_the_state_and_no_step_is_lost(jobs, n, victims):
    expected = undisturbed(jobs, n)
    job = share(jobs, 'sleep=20', n=n)
    before = processes(job, 1, n)
    all_at_step(job, 10)
    for rank in victims:
        kill(before[rank])
    assert replaced(before, processes(job, 2, n)) == set(victims)
    assert parameters(job, n) == expected
    assert rollbacks(job) == [0] * n
    second = set(beginnings(job)[n:])
    assert len(second) == 1 and min(second) >= 10


def test_worker_that_dies_inside_of_backward(jobs):
    """Some of the others have completed the step and some have not."""
    expected = undisturbed(jobs)
    job = share(jobs, 'fault=backward:1')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected
    assert set(beginnings(job)[4:]) in ({10}, {11})


def test_killed_again_and_again(jobs):
    expected = undisturbed(jobs, 4, 'optimizer=sgd')
    job = share(jobs, 'optimizer=sgd', 'sleep=20')
    kill_again_and_again(job)
    assert parameters(job) == expected


def test_donor_that_dies_while_it_gives_its_state_away(jobs):
    expected = undisturbed(jobs)
    job = share(jobs, 'fault=donor', 'sleep=20')
    assert replaced_after_kill(job, 3) == {0, 2}
    assert 'dies as the donor' in job.output
    assert parameters(job) == expected


def test_rank_that_tracks_other_objects_is_refused(jobs):
    job = share(jobs, 'fault=names', 'sleep=20', n=2, restarts=1)
    before = processes(job, 1, 2)
    at_step(job, 10)
    kill(before[1])
    assert job.done() == 1
    assert "elastic: rank 0 has no 'more': all ranks track the same objects" in job.output
