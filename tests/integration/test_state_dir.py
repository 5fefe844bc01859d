"""--state-dir: how a job that is submitted again continues, and folders that are of no use."""

import json
import os
import re
import signal

import pytest
from conftest import free_port, has_own_mounts, poll
from http_client import page
from test_goodput import TRAIN, ctl, goodputs, line_of

RUN_ID = f'{os.getpid()}-again'  # cpprunctl finds the jobs of other tests on this machine too


class Submissions:
    """Starts the same job again and again, each time with a log folder of its own."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.state = jobs.folder / 'state'
        self.file = self.state / f'{RUN_ID}.goodput.json'
        self.number = 0
        self.port = 0

    def submit(self, code, *flags, nodes='1', port=None, n=1, **options):
        self.number += 1
        self.port = port or free_port()
        args = (
            f'--nnodes={nodes}',
            f'--nproc-per-node={n}',
            '--rdzv-backend=c10d',
            f'--rdzv-endpoint=localhost:{self.port}',
            f'--rdzv-id={RUN_ID}',
            f'--state-dir={self.state}',
            f'--log-dir={self.jobs.folder}/{self.logs}',
        )
        return self.jobs.cpprun(*args, *flags, self.jobs.py(TRAIN + code), **options)

    @property
    def logs(self):
        return f'logs{self.number}'

    def last(self):
        """The last `goodput` event of the newest submission."""
        return goodputs(self.jobs, self.logs)[-1]

    def kept(self):
        return json.loads(self.file.read_text())

    def kept_ms(self):
        """The time of all submissions in the file."""
        kept = self.kept()
        parts = (kept['earlier'], kept['newest'])
        return sum(sum(part['spent_ns'].values()) for part in parts) / 1e6

    def page(self, path):
        return page(self.port, f'/{path}', host='localhost')


@pytest.fixture
def again(jobs):
    return Submissions(jobs)


RUNS = """
open(MARKS + '/trained', 'w').write('x')
time.sleep(600)
"""


def test_goodput_continues_over_three_submissions(jobs, again):
    """The first one trains to step 20 and saves step 10; the others resume from there."""
    first = again.submit("train(20, first=1)\nopen(MARKS + '/saved', 'w').write('10')\nsys.exit(3)")
    assert first.done() == 1
    assert again.last()['submissions'] == 1 and 'this_submission' not in again.last()
    assert 'submission' not in line_of(first)
    before = again.kept_ms()
    assert before >= again.last()['total_ms']

    second = again.submit('train(30)' + RUNS)
    jobs.mark('trained')
    running = ctl(jobs, 'goodput', RUN_ID)
    assert 'THIS SUBMISSION' in running and ' in 2 submissions; lost: ' in running
    count = f'cpprun_job_submissions{{run_id="{RUN_ID}"}} 2\n'
    poll(lambda: count in again.page('metrics'), 100)
    shown = json.loads(again.page('status'))['jobs'][RUN_ID]['goodput']
    assert shown['submissions'] == 2 and shown['spent_s']['training'] > 0.8 * 19 * 0.05
    assert ' in 2 submissions; ' in ctl(jobs, 'status', RUN_ID)
    second.send(signal.SIGTERM)
    second.done()
    last = again.last()
    assert last['total_ms'] - last['this_submission']['total_ms'] == pytest.approx(before, abs=0.02)
    assert last['spent_ms']['redone'] == last['this_submission']['spent_ms']['redone']
    assert last['spent_ms']['redone'] > 0.5 * 9 * 50
    before = again.kept_ms()

    third = again.submit('train(35)')
    assert third.done() == 0
    last = again.last()
    assert last['submissions'] == 3 and last['failures'] == 1 and last['best_step'] == 35
    assert last['total_ms'] - last['this_submission']['total_ms'] == pytest.approx(before, abs=0.02)
    assert sum(last['spent_ms'].values()) == pytest.approx(last['total_ms'], abs=0.02)
    assert ' in 3 submissions; lost: ' in line_of(third)
    assert '; this submission trained ' in line_of(third)
    kept = again.kept()
    assert kept['earlier']['submissions'] == 2
    assert kept['best_step'] == -1  # nothing is redone after a success


def test_what_came_before_a_kill_is_kept(jobs, again):
    first = again.submit('train(3)' + RUNS)
    jobs.mark('trained')
    poll(again.file.exists, 100)
    first.send(signal.SIGKILL)
    first.done()
    before = again.kept_ms()
    assert again.kept()['newest']['spent_ns']['importing'] > 0
    assert again.submit('train(5)').done() == 0
    last = again.last()
    assert last['submissions'] == 2
    assert last['total_ms'] - last['this_submission']['total_ms'] == pytest.approx(before, abs=0.02)


def test_a_node_that_comes_late_is_no_further_submission(jobs, again):
    """It reads the file that the first node has written for the same submission."""
    code = """
train(3)
if os.environ['WORLD_SIZE'] == '1':
    open(MARKS + '/trained', 'w').write('x')
    time.sleep(600)
"""
    flags = ('--rdzv-conf=last_call_timeout=1,scale_up_interval=0',)
    first = again.submit(code, *flags, nodes='1:2')
    jobs.mark('trained')
    poll(again.file.exists, 100)
    before = again.kept_ms()
    second = again.submit(code, *flags, nodes='1:2', port=again.port)
    assert first.done() == second.done() == 0
    last = again.last()
    assert last['submissions'] == 1 and last['total_ms'] > before
    assert again.kept()['earlier']['submissions'] == 0


def test_a_damaged_file_is_reported_and_replaced(again):
    again.state.mkdir()
    again.file.write_text('{"version": 1, "newest": 7')
    job = again.submit('train(3)\nsys.exit(3 if attempt == 0 else 0)', '--max-restarts=1')
    assert job.done() == 0
    assert job.err.count('--state-dir') == 1
    assert 'again.goodput.json is ignored: it holds no goodput of this version' in job.err
    assert again.last()['submissions'] == 1
    assert again.kept()['newest']['spent_ns']['training'] > 0


def test_a_file_that_cannot_be_read_is_not_changed(again):
    again.file.mkdir(parents=True)
    job = again.submit('train(3)\nsys.exit(3 if attempt == 0 else 0)', '--max-restarts=1')
    assert job.done() == 0
    assert job.err.count('--state-dir') == 1
    assert 'again.goodput.json is neither read nor changed: Is a directory' in job.err
    assert again.file.is_dir() and not list(again.file.iterdir())


def test_learned_limits_of_sections_are_kept(jobs, again):
    """Without the file the limit of the second job is 5 s, and nothing took long before."""
    learns = """
w.heartbeat(1)
with w.section('validation'):
    time.sleep(1.5)
w.heartbeat(2)
""" + RUNS.replace('600', '0.05') + """
while True:
    time.sleep(0.05)
    w.heartbeat(3)
"""
    first = again.submit(learns, '--hang-timeout=5')
    jobs.mark('trained')
    first.send(signal.SIGTERM)
    first.done()
    kept = json.loads((again.state / f'{RUN_ID}.hang-times.json').read_text())
    assert kept['sections_ns']['validation'] >= 1.5e9
    hangs = """
w.heartbeat(1)
with w.section('validation'):
    time.sleep(600)
"""
    second = again.submit(hangs, '--hang-timeout=5')
    assert second.done() == 1
    took, = re.findall(r"'validation' for [\d.]+ s; its limit is [\d.]+ s; the longest so far took"
                       r' ([\d.]+) s', re.sub(r'\n +', ' ', second.err))[:1]  # fmt: skip
    assert float(took) >= 1.5


def job_on(again, mounts):
    """A job with a restart and a file system of its own at the folder, which costs one warning."""
    again.state.mkdir()
    job = again.submit('train(3)\nsys.exit(3 if attempt == 0 else 0)', '--max-restarts=1',
                       wrap=('unshare', '-m', 'sh', '-c', mounts, again.state))  # fmt: skip
    assert job.done() == 0
    assert job.err.count('--state-dir') == 1
    return job


READ_ONLY = 'mount -t tmpfs none "$0" && mount -o remount,ro "$0" && exec "$@"'


@pytest.mark.skipif(not has_own_mounts(), reason='mounting a file system needs root')
def test_a_read_only_folder_is_reported_once(again):
    job = job_on(again, READ_ONLY)
    assert 'again.goodput.json is not written: Read-only file system' in job.err


FULL = """mount -t tmpfs -o size=8k none "$0" && head -c 8192 /dev/zero >"$0/full"
"$@"; code=$?; echo left: $(ls "$0") >&2; exit $code"""


@pytest.mark.skipif(not has_own_mounts(), reason='mounting a file system needs root')
def test_a_full_disk_is_reported_once_and_keeps_no_draft(again):
    job = job_on(again, FULL)
    assert 'again.goodput.json is not written: ' in job.err
    assert 'No space left on device' in job.err
    assert 'left: full\n' in job.err


def test_a_folder_that_is_a_file_is_reported_once(again):
    again.state.write_text('')
    job = again.submit('train(3)')
    assert job.done() == 0
    assert job.err.count('--state-dir') == 1
