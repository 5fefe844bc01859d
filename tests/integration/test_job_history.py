"""What cpprun_worker knows of the past of a job, for the intervals of maybe_save(). C++
counterparts: tests/sdk/snapshot/job_history_test.cpp, tests/unit/common/goodput.
"""

import sys
import time

import pytest
from launches import ROOT

sys.path.insert(0, str(ROOT / 'worker_sdk' / 'python'))
from cpprun_worker._job_history import JobHistory
from cpprun_worker._snapshot.schedule import time_until_poll

NEAR = 60  # seconds that a test may take between two lines


@pytest.fixture
def restarts(monkeypatch):
    """Sets the number of the job's restarts until now."""
    return lambda count: monkeypatch.setenv('TORCHELASTIC_RESTART_COUNT', str(count))


def test_each_restart_before_a_new_process_was_a_rollback(restarts):
    restarts(3)
    history = JobHistory()
    history.resume('a', 500)  # in the first round of the process
    assert history.rollbacks == 3
    assert 500 <= history.seconds() < 500 + NEAR


def test_restarts_that_keep_the_state_are_no_rollbacks(restarts):
    restarts(1)
    survivor = JobHistory()
    survivor.resume('a', 500)
    restarts(3)
    newcomer = JobHistory()
    record = survivor.record()
    for each in newcomer, survivor:
        each.keep_state(record)
        assert each.rollbacks == 1
        assert each.saved_at('a') == 500
        assert 500 <= each.seconds() < 500 + NEAR
    restarts(4)
    newcomer.resume('a', 700)
    assert newcomer.rollbacks == 2


def test_a_survivor_that_resumes_counts_its_restarts_once(restarts):
    restarts(0)
    history = JobHistory()
    restarts(2)
    for owner in 'a', 'b':
        history.resume(owner, 10)
    assert history.rollbacks == 2


def test_snapshots_of_later_rounds_continue_the_interval(restarts):
    restarts(0)
    history = JobHistory()
    first = history.saved_at('a')
    time.sleep(0.01)
    assert history.saved_at('a') == first < history.begin_save('a') == history.saved_at('a')


@pytest.mark.parametrize(
    ('left', 'interval', 'expected'),
    [(0.7, 2, 0.7), (0.001, 2, 0.02), (50, 60, 1), (0, 2, 0.2), (-5, 3600, 1)],
)
def test_the_clock_is_read_when_a_save_is_due(left, interval, expected):
    assert time_until_poll(left, interval) == expected
