"""Goodput of real jobs: the phases, their sum, the last line, `cpprunctl goodput`, /metrics."""

import json
import re

import pytest
from conftest import free_port
from cpprunctl import output_of
from http_client import page
from run_events import events_of_run
from test_hangs import START

# Trains to step LAST. It resumes from the step in $MARKS/saved, which it never changes.
TRAIN = START + """
import time
MARKS, attempt = os.environ['MARKS'], int(os.environ['TORCHELASTIC_RESTART_COUNT'])
def saved():
    try:
        return int(open(MARKS + '/saved').read())
    except OSError:
        return 0
def train(last, first=None, pause=0.05):
    for step in range(first or saved() + 1, last + 1):
        time.sleep(pause)
        w.heartbeat(step)
w.heartbeat(saved(), w.STARTING)
"""


def events_of(jobs, logs='logs'):
    return events_of_run(jobs.folder / logs)


def goodputs(jobs, logs='logs'):
    return [event for event in events_of(jobs, logs) if event['event'] == 'goodput']


def line_of(job):
    """Of goodput; '' if there is none."""
    found = re.findall(r'^cpprun: ((?:trained|the workers ran) .*)$', job.err, re.M)
    assert len(found) < 2, job.err
    return found[0] if found else ''


@pytest.fixture
def train(jobs):
    def start(code, *flags, n=2, logs='logs'):
        args = ('--standalone', f'--nproc-per-node={n}', f'--log-dir={jobs.folder / logs}')
        return jobs.cpprun(*args, *flags, jobs.py(TRAIN + code))

    return start


def ctl(jobs, *args):
    return output_of(*args, env=jobs.env())


def test_steps_that_are_done_again_are_lost(jobs, train):
    """10 of the 20 steps of the first attempt are redone."""
    code = """
open(MARKS + '/saved', 'w').write('10') if attempt == 0 else None
train(20, first=1) if attempt == 0 else train(40)
if attempt == 0:
    sys.exit(3)
"""
    job = train(code, '--max-restarts=1')
    assert job.done(60) == 0, job.err
    assert re.match(r'trained \d+\.\d % of [\d.]+ s; lost: [\d.]+ s \w', line_of(job)), job.err
    last = goodputs(jobs)[-1]
    spent = last['spent_ms']
    assert last['failures'] == last['restarts'] == 1
    assert last['best_step'] == 40
    # 9 pauses lie between the first redone step and the last one, 39 between all others.
    assert spent['redone'] > 0.5 * 9 * 50
    assert spent['training'] > 0.8 * (19 + 20) * 50
    assert spent['redone'] < spent['training']
    assert spent['importing'] > 0 and spent['stopping'] > 0 and spent['unknown'] == 0
    assert last['share'] == pytest.approx(spent['training'] / last['total_ms'])


def test_phases_sum_to_the_wall_clock_in_each_round(jobs, train):
    job = train('train(5)\nsys.exit(3 if attempt < 3 else 0)', '--max-restarts=3')
    assert job.done(60) == 0, job.err
    found = goodputs(jobs)
    assert len(found) == 5  # four rounds, and the end
    for event in found:
        assert sum(event['spent_ms'].values()) == pytest.approx(event['total_ms'], abs=0.02)
    for before, after in zip(found, found[1:]):
        passed = (after['mono_ns'] - before['mono_ns']) / 1e6
        assert after['total_ms'] - before['total_ms'] == pytest.approx(passed, abs=1)
        for phase, spent in before['spent_ms'].items():
            assert after['spent_ms'][phase] >= spent, phase
    whole = (found[-1]['mono_ns'] - events_of(jobs)[0]['mono_ns']) / 1e6
    assert found[-1]['total_ms'] > whole  # it began before the agent


def test_a_good_run_prints_nothing(jobs, train):
    job = train('train(3)')
    assert job.done(60) == 0, job.err
    assert line_of(job) == ''
    assert goodputs(jobs)[-1]['spent_ms']['training'] > 0


def test_a_job_that_fails_at_once_prints_no_goodput(jobs):
    job = jobs.cpprun('--standalone', jobs.sh('exit 3'))
    assert job.done(60) == 1
    assert line_of(job) == ''


def test_without_steps_the_share_is_unknown(jobs):
    worker = jobs.sh('test $TORCHELASTIC_RESTART_COUNT = 1')
    args = ('--standalone', '--max-restarts=1', f'--log-dir={jobs.folder}/logs', '--no-python')
    job = jobs.cpprun(*args, worker)
    assert job.done(60) == 0, job.err
    assert 'reported no steps, so the share of training is unknown' in line_of(job)
    last = goodputs(jobs)[-1]
    assert last['share'] is None and last['best_step'] == -1
    assert last['spent_ms']['unknown'] > 0
    assert not last['spent_ms']['training'] and not last['spent_ms']['importing']


def test_one_rank_that_reports_steps_is_enough(jobs, train):
    code = """
if rank == '0':
    train(10)
else:
    time.sleep(0.5)
"""
    assert train(code).done(60) == 0
    assert goodputs(jobs)[-1]['spent_ms']['training'] > 0.8 * 9 * 50


def test_a_hang_is_lost_from_the_last_heartbeat(jobs, train):
    job = train('train(3)\ntime.sleep(600 if attempt == 0 else 0)',
                '--max-restarts=1', '--hang-timeout=2')  # fmt: skip
    assert job.done(60) == 0, job.err
    assert 's hanging' in line_of(job)
    assert goodputs(jobs)[-1]['spent_ms']['hanging'] >= 2000


def test_time_of_saves_is_known(jobs, train):
    code = """
for step in (1, 2):
    train(step, step)
    w.heartbeat(step, w.SAVING)
    time.sleep(0.4)
train(4, 3)
"""
    assert train(code).done(60) == 0
    spent = goodputs(jobs)[-1]['spent_ms']
    assert 800 <= spent['saving'] < spent['saving'] + spent['training']


def test_cpprunctl_shows_a_running_job_and_one_that_is_over(jobs, train):
    code = """
train(4)
open(MARKS + '/trains', 'w').write('x')
while not os.path.exists(MARKS + '/end'):
    time.sleep(0.01)
"""
    job = train(code, '--job-name=measured')
    jobs.mark('trains')
    running = ctl(jobs, 'goodput', 'measured')
    assert 'last step 4; the job runs' in running
    assert re.search(r'^training +[\d.]+ s +[\d.]+ %$', running, re.M), running
    (jobs.marks / 'end').write_text('x')
    assert job.done(60) == 0
    text = ctl(jobs, 'goodput', jobs.folder / 'logs')
    assert 'the job runs' not in text and 'failures 0, restarts 0; last step 4' in text
    event = json.loads(ctl(jobs, 'goodput', '--json', jobs.folder / 'logs'))
    assert event == goodputs(jobs)[-1]


def two_agents(jobs, code, *flags):
    endpoint = f'localhost:{free_port()}'
    args = ('--nnodes=2', '--nproc-per-node=1', '--rdzv-backend=c10d', '--rdzv-id=pair',
            f'--rdzv-endpoint={endpoint}', *flags)  # fmt: skip
    worker = jobs.py(TRAIN + code)
    return endpoint, [
        jobs.cpprun(*args, f'--log-dir={jobs.folder}/logs{i}', worker) for i in range(2)
    ]


def test_two_agents_print_it_once_and_serve_metrics(jobs):
    code = """
train(24)
open(f'{MARKS}/trains-{rank}-{attempt}', 'w').write('x')
while attempt == 1 and not os.path.exists(MARKS + '/end'):
    time.sleep(0.01)
sys.exit(3 if attempt == 0 else 0)
"""
    endpoint, agents = two_agents(jobs, code, '--max-restarts=1')
    for rank in range(2):
        jobs.mark(f'trains-{rank}-1')
    text = page(endpoint.removeprefix('localhost:'), '/metrics', host='localhost')
    spent = dict(
        re.findall(r'^cpprun_job_time_seconds_total{run_id="pair",phase="(\w+)"} (.*)$', text, re.M)
    )
    assert len(spent) == 10, text
    assert float(spent['training']) > 0.8 * 23 * 0.05
    assert float(spent['stopping']) > 0
    assert re.search(r'^trained \d+\.\d % of .*; lost: ', ctl(jobs, 'status', 'pair'), re.M)
    (jobs.marks / 'end').write_text('x')
    for agent in agents:
        assert agent.done(60) == 0, agent.err
    assert sorted(bool(line_of(agent)) for agent in agents) == [False, True]
