"""cpprun_worker.elastic with real trainings: which processes stay after a failure, and what they
compute. The worker is tests/support/elastic_worker.py.
"""

import re
import signal

import pytest
from conftest import is_alive, kill, poll
from elastic_jobs import (
    Undisturbed,
    all_at_step,
    at_step,
    beginnings,
    parameters,
    processes,
    replaced,
    replaced_after_kill,
    rollbacks,
)
from launches import ROOT
from run_events import events_of_run
from torch_python import PYTHON, needs_torch

WORKER = ROOT / 'tests' / 'support' / 'elastic_worker.py'

pytestmark = needs_torch


def train(jobs, *args, n=4, flags=(), restarts=3, preload='torch.nn.parallel', worker=WORKER):
    """Forked workers spare each test many imports of torch; for survivors nothing differs."""
    fixed = ('--standalone', f'--nproc-per-node={n}', f'--max-restarts={restarts}')
    own = {'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': PYTHON}
    return jobs.cpprun(*fixed, f'--preload={preload}', *flags, worker, *args, env=own)


def events_of(jobs):
    return events_of_run(jobs.folder / 'logs')


undisturbed = Undisturbed(train)


@pytest.mark.parametrize('victims', [(2,), (0,), (1, 2), (0, 1, 3)])
def test_only_killed_workers_are_replaced(jobs, victims):
    expected = undisturbed(jobs)
    job = train(jobs, 'sleep=0.05', flags=('--log-dir=logs',))
    before = processes(job, 1)
    all_at_step(job, 10)
    for rank in victims:
        kill(before[rank])
    after = processes(job, 2)
    assert replaced(before, after) == set(victims)
    assert parameters(job) == expected
    kept = [e for e in events_of(jobs) if e['event'] == 'worker_kept']
    assert {e['pid'] for e in kept} == set(after.values()) & set(before.values())
    assert all(e['step'] >= 9 and e['round'] == 2 for e in kept)
    starts = beginnings(job)
    assert starts[:4] == [0] * 4 and len(set(starts[4:])) == 1 and starts[4] >= 10
    assert rollbacks(job) == [0] * 4


@pytest.mark.parametrize('wraps', ['torch', 'round'])
def test_all_resume_from_the_snapshot_in_memory(jobs, wraps):
    """Without share_state() a new rank does not know the order of gradients that survivors had."""
    expected = undisturbed(jobs)
    flags = ('--snapshot-dir=snapshots',)
    job = train(jobs, 'state=memory', f'wraps={wraps}', 'sleep=0.05', flags=flags)
    before = processes(job, 1)
    at_step(job, 13)
    kill(before[1])
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected
    assert rollbacks(job) == [1] * 4


def test_survivors_of_two_failures_stay(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'sleep=0.05', preload='off')
    first = processes(job, 1)
    at_step(job, 8)
    kill(first[3])
    second = processes(job, 2)
    at_step(job, 16, round=2)
    kill(second[0])
    third = processes(job, 3)
    assert (replaced(first, second), replaced(second, third)) == ({3}, {0})
    assert parameters(job) == expected


@pytest.mark.parametrize('fault', ['hang', 'wait', 'swallow'])
def test_worker_that_does_not_leave_its_round_is_replaced(jobs, fault):
    expected = undisturbed(jobs)
    flags = ('--regroup-timeout=5', '--shutdown-timeout=1')
    job = train(jobs, f'fault={fault}:1', 'sleep=0.05', flags=flags)
    before = processes(job, 1)
    if fault != 'swallow':
        job.wait_for(rf'\[rank 1\] {fault}s')
    else:
        at_step(job, 10)
    kill(before[3])
    assert replaced(before, processes(job, 2)) == {1, 3}
    assert parameters(job) == expected


def test_worker_that_hangs_is_replaced_and_the_others_stay(jobs):
    expected = undisturbed(jobs)
    flags = ('--hang-timeout=8', '--max-hangs=1', '--shutdown-timeout=1')
    job = train(jobs, 'fault=wait:1', 'sleep=0.05', flags=flags, restarts=0)
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected
    assert 'regrouping the other workers (restart 1 of 1 after hangs)' in job.output


def test_failed_second_call_replaces_that_worker(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'fault=raise:0', 'sleep=0.05')
    assert replaced_after_kill(job, 3) == {0, 2}
    assert 'the second call fails' in job.output
    assert parameters(job) == expected


@pytest.mark.parametrize('victim', [0, 1])  # 0 hosts the store that the others wait for
def test_survivors_stay_if_a_worker_dies_before_the_group_is_made(jobs, victim):
    expected = undisturbed(jobs)
    job = train(jobs, f'fault=early:{victim}', 'sleep=0.05')
    assert replaced_after_kill(job, 3) == {victim, 2}, job.output
    assert parameters(job) == expected
    # The others may be one step behind rank 0, which has reached step 10.
    assert min(beginnings(job)[4:]) >= 9
    assert 'did not regroup in time' not in job.output


def test_survivor_stays_that_connects_to_a_store_that_has_ended(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'fault=early:1', 'late=3', 'sleep=0.05')
    assert replaced_after_kill(job, 3) == {1, 2}, job.output
    assert parameters(job) == expected


def test_two_failures_in_a_row_before_a_step_restart_all(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'fault=again:1', 'sleep=0.05')
    assert replaced_after_kill(job, 4) == {0, 1, 2, 3}
    assert len(re.findall('dies in round', job.output)) == 2
    assert parameters(job) == expected


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT])
def test_signal_while_workers_regroup_ends_all(jobs, number):
    flags = ('--regroup-timeout=600', '--shutdown-timeout=1')
    job = train(jobs, 'fault=hang:1', 'sleep=0.05', flags=flags)
    before = processes(job, 1)
    job.wait_for(r'\[rank 1\] hangs')
    kill(before[3])
    job.wait_for('rank 2 stays')
    job.send(number)
    assert job.done() != 0
    assert not any(is_alive(pid) for pid in before.values())
    assert 'in round 2' not in job.output


def test_worker_that_dies_inside_of_backward(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'fault=backward:1', 'sleep=0.02')
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


def test_worker_that_dies_while_a_snapshot_is_written(jobs):
    expected = undisturbed(jobs)
    args = ('state=memory', 'fault=save:1', 'sleep=0.02')
    job = train(jobs, *args, flags=('--snapshot-dir=snapshots',))
    before = processes(job, 1)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


def test_donor_that_dies_while_it_gives_its_state_away(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'fault=broadcast', 'sleep=0.05')
    assert replaced_after_kill(job, 3) == {0, 2}
    assert 'dies as the donor' in job.output
    assert parameters(job) == expected


def test_keyboard_interrupt_of_one_worker_replaces_it(jobs):
    expected = undisturbed(jobs)
    job = train(jobs, 'sleep=0.05')
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[1], signal.SIGINT)
    assert replaced(before, processes(job, 2)) == {1}
    assert parameters(job) == expected


@pytest.mark.parametrize(
    ('kind', 'why'),
    [
        ('fail', 'OSError: the device does not answer'),
        ('false', 'it has returned False'),
        ('hang', 'it has not ended within 2 s'),
    ],
)
def test_unhealthy_worker_is_replaced(jobs, kind, why):
    expected = undisturbed(jobs)
    job = train(jobs, f'health={kind}:1', 'sleep=0.05')
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[3])
    assert replaced(before, processes(job, 2)) == {1, 3}
    assert f'rank 1 is replaced: the health check of this worker has failed: {why}' in job.output
    assert len(re.findall('checks its health', job.output)) == 3
    assert job.find('round 2 on this node: 2 workers stay, 2 are replaced')
    assert parameters(job) == expected


def test_console_names_the_workers_that_stay(jobs):
    job = train(jobs, 'sleep=0.05', flags=('--log-dir=logs',))
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[2])
    parameters(job)
    failed = r'rank 2 .* was killed by SIGKILL; regrouping the other workers \(restart 1 of 3'
    assert job.find(failed)
    assert job.find('round 2 on this node: 3 workers stay, 1 is replaced')
    assert 'restarting' not in job.output
    (started,) = [e for e in events_of(jobs) if e['event'] == 'round_started' and e['round'] == 2]
    assert (started['workers'], started['kept']) == (4, 3)


def test_threads_children_and_handlers_live_on(jobs):
    """What they write comes from the round in which they were made; only a thread writes where its
    process writes now."""
    expected = undisturbed(jobs)
    flags = ('--log-dir=logs', '--tee=3')
    job = train(jobs, 'company=yes', 'sleep=0.05', flags=flags)
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[2])
    assert replaced(before, processes(job, 2)) == {2}
    at_step(job, 15, round=2)
    kill(before[1], signal.SIGUSR1)
    job.wait_for(r'\[rank 1\] handles SIGUSR1')
    assert parameters(job) == expected
    assert 'handles SIGTERM' not in job.output
    second = max((jobs.folder / 'logs').glob('*/attempt_1'))
    output = (second / '1' / 'stdout.log').read_text()
    assert 'line of the thread' in output
    assert 'line of the child' not in output
    poll(lambda: not any(is_alive(pid) for pid in before.values()), 20)


def test_without_the_option_all_are_restarted(jobs):
    job = train(jobs, 'sleep=0.05', flags=('--regroup-timeout=0',), preload='off')
    assert replaced_after_kill(job, 2) == {0, 1, 2, 3}
    assert parameters(job) == undisturbed(jobs)


def test_spent_budget_ends_the_job_and_its_workers(jobs):
    job = train(jobs, 'sleep=0.05', restarts=0)
    before = processes(job, 1)
    at_step(job, 10)
    kill(before[2])
    assert job.done() == 1
    assert not any(is_alive(pid) for pid in before.values())
    assert 'stays' not in job.output


def test_output_of_each_attempt_goes_to_its_own_folder(jobs):
    flags = ('--log-dir=logs', '--redirects=3')
    job = train(jobs, 'sleep=0.05', flags=flags, n=2)
    found = jobs.folder / 'logs'

    def texts():
        return {path.parent.parent.name: path.read_text() for path in found.rglob('0/stdout.log')}

    poll(lambda: any('step 10 of' in text for text in texts().values()), 60)
    first = next(path for path in found.rglob('1/stdout.log'))
    kill(int(re.search(r'process (\d+)', first.read_text())[1]))
    assert job.done() == 0, job.output
    first, second = (texts()[name] for name in sorted(texts()))
    assert 'in round 1' in first and 'round 2' not in first
    assert 'in round 2' in second and 'round 1' not in second
    assert re.search('process (.*) in', first)[1] == re.search('process (.*) in', second)[1]


def test_under_torchrun_the_function_is_called_once(jobs):
    torchrun = (f'{ROOT}/.venv/bin/torchrun', '--standalone', '--nproc-per-node=2')
    job = jobs.start(*torchrun, WORKER, 'steps=5', env={'OMP_NUM_THREADS': '1'})
    assert job.done() == 0, job.output
    assert len(re.findall('call of process', job.output)) == 2
