"""--on-repeat: failures that come again are named, and with `stop` they end the job with 78."""

import re

import pytest
from test_goodput import TRAIN, events_of, two_agents

STOP = '--on-repeat=stop'
USELESS = 78


@pytest.fixture
def train(jobs):
    def start(code, *flags):
        args = ('--standalone', '--nproc-per-node=2', f'--log-dir={jobs.folder}/logs')
        return jobs.cpprun(*args, *flags, jobs.py(TRAIN + code))

    return start


def starts(jobs):
    return len([event for event in events_of(jobs) if event['event'] == 'round_started'])


def summary_of(jobs):
    return [event for event in events_of(jobs) if event['event'] == 'failure_summary'][-1]


def field(job, name):
    """Of the failure summary on the console."""
    unwrapped = re.sub(r'\n {12}', ' ', job.err)
    found = re.search(rf'^  {name} +(.*)$', unwrapped, re.M)
    return found[1] if found else ''


SAME_STEP = 'train(3); raise ValueError(f"bad batch of process {os.getpid()}")'


def test_the_same_failure_at_the_same_step_ends_the_job(jobs, train):
    job = train(SAME_STEP, '--max-restarts=9', STOP)
    assert job.done(60) == USELESS, job.err
    assert starts(jobs) == 2
    assert field(job, 'stopped').startswith('the same failure came again at step 3; another try')
    assert summary_of(jobs)['same_failures'] == 2
    assert summary_of(jobs)['step'] == 3
    assert summary_of(jobs)['restarts_used'] == 1


def test_by_default_it_is_only_named(jobs, train):
    """Failures at start-up have a text of their own, so these workers live longer."""
    job = train('train(3); time.sleep(10); raise ValueError("bad batch")', '--max-restarts=1')
    assert job.done(120) == 1, job.err
    assert starts(jobs) == 2
    assert field(job, 'repeated') == 'same failure at step 3, 2nd time'
    assert field(job, 'stopped') == ''


def test_a_job_that_gets_further_continues(jobs, train):
    job = train('train(3 + attempt); sys.exit(3 if attempt < 5 else 0)', '--max-restarts=9', STOP)
    assert job.done(60) == 0, job.err
    assert starts(jobs) == 6


@pytest.mark.parametrize('code', ['import there_is_no_such_module', 'eval("1 +")'])
def test_an_import_or_syntax_error_ends_the_job_at_once(jobs, train, code):
    job = train(code, '--max-restarts=9', STOP)
    assert job.done(60) == USELESS, job.err
    assert starts(jobs) == 1
    assert field(job, 'stopped').startswith('each start brings this error again')


def test_by_default_an_import_error_uses_the_restarts(jobs, train):
    job = train('import there_is_no_such_module', '--max-restarts=2')
    assert job.done(60) == 1, job.err
    assert starts(jobs) == 3


def test_three_restarts_without_progress_end_the_job(jobs, train):
    """Another error each time, at an earlier step than before."""
    code = 'train(9 if attempt == 0 else attempt); sys.exit(3 + attempt)'
    job = train(code, '--max-restarts=9', STOP)
    assert job.done(60) == USELESS, job.err
    assert starts(jobs) == 4
    assert field(job, 'stopped').startswith('3 restarts in a row brought no progress')


def test_a_program_of_unknown_progress_ends_after_the_same_failures_only(jobs):
    args = ('--standalone', '--max-restarts=9', STOP, f'--log-dir={jobs.folder}/logs')
    job = jobs.cpprun(*args, '--no-python', jobs.sh('exit 3'))
    assert job.done(60) == USELESS, job.err
    assert starts(jobs) == 4


def test_different_failures_of_unknown_progress_use_the_restarts(jobs):
    args = ('--standalone', '--max-restarts=5', STOP, f'--log-dir={jobs.folder}/logs')
    worker = jobs.sh('exit $((3 + TORCHELASTIC_RESTART_COUNT))')
    job = jobs.cpprun(*args, '--no-python', worker)
    assert job.done(60) == 1, job.err
    assert starts(jobs) == 6


def test_a_signal_at_the_same_step(jobs, train):
    job = train('train(3)\nif rank == "1": os.kill(os.getpid(), 9)\ntime.sleep(600)',
                '--max-restarts=9', STOP)  # fmt: skip
    assert job.done(60) == USELESS, job.err
    assert summary_of(jobs)['signal'] == 'SIGKILL'


def test_a_hang_at_the_same_step(jobs, train):
    job = train('train(3); time.sleep(600)', '--max-restarts=9', '--hang-timeout=2', STOP)
    assert job.done(60) == USELESS, job.err
    assert starts(jobs) == 2


def test_the_last_restart_is_no_different(jobs, train):
    job = train(SAME_STEP, '--max-restarts=1', STOP)
    assert job.done(60) == USELESS, job.err


def test_all_agents_end_with_the_code(jobs):
    _, agents = two_agents(jobs, 'train(3)\nsys.exit(3 if rank == "1" else time.sleep(600))',
                           '--max-restarts=9', STOP)  # fmt: skip
    for agent in agents:
        assert agent.done(60) == USELESS, agent.err
    assert 'another try would not help (--on-repeat=stop)' in re.sub(
        r'\n {12}', ' ', agents[0].err + agents[1].err
    )


def test_a_wrong_word_is_a_usage_error(jobs):
    job = jobs.cpprun('--standalone', '--on-repeat=never', jobs.sh('exit 0'))
    assert job.done(60) == 2
    assert '--on-repeat' in job.err
