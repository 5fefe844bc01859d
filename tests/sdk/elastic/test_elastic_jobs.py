"""cpprun::elastic with real trainings: which processes stay after a failure, and what they compute.
The program is elastic_case.cpp. Python counterpart: tests/integration/test_elastic.py.
"""

import pathlib
import random
import re
import signal

import pytest
from elastic_jobs import at_step, parameters, processes, replaced, replaced_after_kill
from launches import BIN, ROOT, is_alive, kill


def train(jobs, *words, n=4, name='elastic_train', **options):
    flags = ('--snapshot-dir=snapshots', *options.pop('flags', ()))
    return jobs.cases(n, name, *words, flags=flags, **options)


def read_status(pid):
    return pathlib.Path(f'/proc/{pid}/status').read_text()


_undisturbed = {}


def undisturbed(jobs, n=4, **options):
    key = (n, *options.items())
    if key not in _undisturbed:
        _undisturbed[key] = parameters(train(jobs, n=n, **options), n)
        for path in sorted((jobs.folder / 'snapshots').rglob('*'), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
    return _undisturbed[key]


@pytest.mark.parametrize(
    ('n', 'victims'), [(2, (1,)), (2, (0,)), (4, (2,)), (4, (0,)), (4, (1, 2)), (4, (0, 1, 3))]
)
def test_only_killed_workers_are_replaced(jobs, n, victims):
    expected = undisturbed(jobs, n)
    job = train(jobs, 'sleep=20', n=n)
    before = processes(job, 1, n)
    at_step(job, random.Random(str(victims)).randrange(6, 20))
    for rank in victims:
        kill(before[rank])
    assert replaced(before, processes(job, 2, n)) == set(victims), job.output
    assert parameters(job, n) == expected
    stay = 'worker stays' if n - len(victims) == 1 else 'workers stay'
    assert job.find(f'round 2 on this node: {n - len(victims)} {stay}, {len(victims)} ')


def test_write_to_a_lost_peer_does_not_end_a_worker(jobs):
    """SIGPIPE would: a survivor may write to a socket that has been shut down."""
    job = train(jobs, 'sleep=20', n=2)
    pids = processes(job, 1, 2).values()
    at_step(job, 2)
    for pid in pids:
        ignored = re.search(r'^SigIgn:\s*(\w+)', read_status(pid), re.MULTILINE)[1]
        assert int(ignored, 16) & 1 << signal.SIGPIPE - 1, ignored
    parameters(job, 2)


def test_survivors_of_two_failures_stay(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'sleep=20')
    first = processes(job, 1)
    at_step(job, 8)
    kill(first[3])
    second = processes(job, 2)
    at_step(job, 16, round=2)
    kill(second[0])
    third = processes(job, 3)
    assert (replaced(first, second), replaced(second, third)) == ({3}, {0}), job.output
    assert parameters(job) == expected


@pytest.mark.parametrize('fault', ['backward', 'throw'])
def test_worker_that_fails_by_itself_is_replaced(jobs, fault):
    """It dies inside of backward, or throws an exception of its own."""
    expected = undisturbed(jobs)
    job = train(jobs, f'fault={fault}:1')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


@pytest.mark.parametrize('fault', ['hang', 'swallow'])
def test_worker_that_does_not_leave_its_round_is_replaced(jobs, fault):
    expected = undisturbed(jobs)
    flags = ('--regroup-timeout=5', '--shutdown-timeout=1')
    job = train(jobs, f'fault={fault}:1', 'sleep=20', flags=flags)
    before = processes(job, 1)
    if fault == 'hang':
        job.wait_for(r'\[rank 1\] hangs')
    else:
        at_step(job, 10)
    kill(before[3])
    assert replaced(before, processes(job, 2)) == {1, 3}
    assert parameters(job) == expected


def test_exception_without_a_restart_ends_the_job(jobs):
    """As without elastic."""
    job = train(jobs, 'fault=throw:1', restarts=0)
    assert job.done() == 1
    assert 'std::runtime_error: the data has no labels' in job.output
    assert 'in round 2' not in job.output


def test_failed_second_call_replaces_that_worker(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'fault=second:0', 'sleep=20')
    assert replaced_after_kill(job, 3) == {0, 2}
    assert 'std::runtime_error: the second call fails' in job.output
    assert parameters(job) == expected


@pytest.mark.parametrize('victim', [0, 1])  # 0 hosts the store that the others wait for
def test_survivors_stay_if_a_worker_dies_before_the_group_is_made(jobs, victim):
    expected = undisturbed(jobs)
    job = train(jobs, f'fault=early:{victim}', 'sleep=20')
    assert replaced_after_kill(job, 3) == {victim, 2}
    assert parameters(job) == expected
    assert 'did not regroup in time' not in job.output


@pytest.mark.parametrize(
    ('kind', 'why'),
    [
        ('fail', 'std::runtime_error: the device does not answer'),
        ('false', 'it has returned false'),
        ('hang', 'it has not ended within 2000 ms'),
    ],
)
def test_unhealthy_worker_is_replaced(jobs, kind, why):
    expected = undisturbed(jobs)
    job = train(jobs, f'health={kind}:1', 'sleep=20')
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[3])
    assert replaced(before, processes(job, 2)) == {1, 3}
    assert f'rank 1 is replaced: the health check of this worker has failed: {why}' in job.output
    assert parameters(job) == expected


def test_without_the_option_all_are_restarted(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'sleep=20', flags=('--regroup-timeout=0',))
    assert replaced_after_kill(job, 2) == {0, 1, 2, 3}
    assert parameters(job) == expected


def test_round_that_is_too_small(jobs):
    job = train(jobs, 'min=3', n=2, restarts=0)
    assert job.done() == 1
    assert 'this round has 2 workers, fewer than min_world = 3' in job.output


@pytest.mark.parametrize('flags', [(), ('--master-port=29571',)])
def test_groups_that_are_made_again_and_again_meet(jobs, flags):
    """The keys of a group have the round and the group's number in the round, so a process that has
    made other groups before meets a new one, also where the port stays the same."""
    job = jobs.cases(2, 'elastic_groups', 'sleep=20', flags=flags)
    before = processes(job, 1, 2)
    at_step(job, 10)
    kill(before[1])
    second = processes(job, 2, 2)
    at_step(job, 10, round=2)
    kill(second[0])
    third = processes(job, 3, 2)
    assert (replaced(before, second), replaced(second, third)) == ({1}, {0})
    assert job.done() == 0, job.output
    assert len(re.findall('ended in round 3', job.output)) == 2


def test_output_of_each_attempt_goes_to_its_own_folder(jobs):
    job = train(jobs, 'sleep=20', n=2, flags=('--log-dir=logs', '--redirects=3', '--tee=3'))
    before = processes(job, 1, 2)
    at_step(job, 10)
    kill(before[1])
    parameters(job, 2)
    found = sorted((jobs.folder / 'logs').glob('*/attempt_*/0/stdout.log'))
    first, second = (path.read_text() for path in found)
    assert 'in round 1' in first and 'round 2' not in first
    assert 'in round 2' in second and 'round 1' not in second
    assert 'parameters' in second


def test_under_torchrun_the_function_is_called_once(jobs):
    torchrun = (ROOT / '.venv' / 'bin' / 'torchrun', '--standalone', '--nproc-per-node=2')
    program = (BIN / 'sdk_elastic_cases', 'elastic_train', 'steps=5')
    job = jobs.start(*torchrun, '--no-python', *program, env={'OMP_NUM_THREADS': '1'})
    assert job.done() == 0, job.output
    assert len(re.findall('call of process', job.output)) == 2


def test_spent_budget_ends_the_job_and_its_workers(jobs):
    job = train(jobs, 'sleep=20', restarts=0)
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[2])
    assert job.done() == 1
    assert not any(is_alive(pid) for pid in before.values())
    assert 'stays' not in job.output
