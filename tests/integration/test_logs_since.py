"""cpprunctl logs --since: results with and without timestamps in log files."""

import os
import re
import time

import pytest
from cpprunctl import TAKES, ctl, output_of
from launches import poll
from test_cpprunctl import own_run_id

# Lines of which the first two are old; attempt 0 fails on a command.
TIMED = """
import os, sys, time
def log_line(ago, text):
    at = time.localtime(time.time() - ago)
    print(time.strftime('%Y-%m-%d %H:%M:%S', at) + ',000 INFO ' + text)
log_line(7200, 'two hours ago')
print('  more of it')
log_line(60, 'a minute ago')
print('  no time')
attempt = os.environ['TORCHELASTIC_RESTART_COUNT']
print('attempt', attempt, flush=True)
open(os.environ['MARKS'] + '/up-' + attempt + '-' + os.environ['RANK'], 'w').write('x')
while attempt == '0' and not os.path.exists(os.environ['MARKS'] + '/fail'):
    time.sleep(0.01)
sys.exit(3) if attempt == '0' else time.sleep(120)
"""


@pytest.fixture
def job(jobs):
    """Starts workers whose output is kept; returns the job's run id."""

    def start(code, n=1, *flags):
        made = jobs.cpprun('--standalone', f'--nproc-per-node={n}', '--redirects=3',
                           f'--log-dir={jobs.folder}/logs', *flags, *jobs.py(code))
        jobs.mark('up-0-0', TAKES)
        return own_run_id(made)

    return start


def grow_old(jobs, began, wrote):
    """As if its workers had started, and had last written, that many seconds ago."""
    now = time.time()
    (run,) = (jobs.folder / 'logs').glob('*/events.jsonl')
    poll(lambda: 'round_started' in run.read_text(), what=f'the start in {run}')
    text = re.sub(r'"time_us":\d+', f'"time_us":{int((now - began) * 1e6)}', run.read_text())
    run.write_text(text)
    for path in (jobs.folder / 'logs').glob('*/attempt_*/*/*.log'):
        os.utime(path, (now - wrote, now - wrote))


def test_worker_that_started_later_is_shown_whole(job):
    run_id = job(TIMED)
    shown = output_of('logs', '--since', '1m', run_id)
    assert shown.startswith('[0]: ') and shown.count('\n') == 5, shown
    assert 'two hours ago' in shown, 'the worker itself is younger than that'


def test_lines_with_times_are_filtered(jobs, job):
    run_id = job(TIMED)
    grow_old(jobs, 86400, 1)
    lines = output_of('logs', '--since', '30m', '--rank', 0, run_id).splitlines()
    assert [line.split('INFO ')[-1] for line in lines] == [
        '  more of it', 'a minute ago', '  no time', 'attempt 0']
    assert 'two hours ago' in output_of('logs', '--since', '3h', run_id)


def test_older_files_are_left_out(jobs, job):
    run_id = job(TIMED)
    grow_old(jobs, 600, 600)
    shown = ctl('logs', '--since', '5m', run_id)
    assert (shown.returncode, shown.stdout) == (0, '')
    assert 'no log file was written since' in shown.stderr


def test_lines_without_times_are_marked(jobs, job):
    run_id = job(TIMED.replace("at) + ',000 ", "at)[:4] + ' "))
    grow_old(jobs, 86400, 1)
    shown = ctl('logs', '--since', '5m', '-n', 2, '--rank', 0, run_id)
    assert shown.returncode == 0 and shown.stdout == '  no time\nattempt 0\n', shown
    assert 'its lines carry no times; here are its last 2' in shown.stderr


def test_earlier_rounds_come_first(jobs, job):
    run_id = job(TIMED, 2, '--max-restarts=1')
    jobs.mark('up-0-1', TAKES)
    (jobs.marks / 'fail').touch()
    for rank in range(2):
        jobs.mark(f'up-1-{rank}', TAKES)
    lines = output_of('logs', '--since', '2m', run_id).splitlines()
    attempts = [line for line in lines if 'attempt' in line]
    assert attempts == ['[0]: attempt 0', '[1]: attempt 0', '[0]: attempt 1', '[1]: attempt 1']
    only = output_of('logs', '--since', '2m', '--rank', 1, run_id)
    assert only.count('attempt 0\n') == only.count('attempt 1\n') == 1
    assert 'attempt 0' not in output_of('logs', run_id), 'without a time: the round that runs'


def test_invalid_time_is_rejected(job):
    refused = ctl('logs', '--since', 'yesterday', job(TIMED))
    assert refused.returncode == 2 and '30s, 5m, 2h, 1d' in refused.stderr
