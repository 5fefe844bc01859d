"""cpprunctl and jobs that have ended: ps -a, events, report; and how top ends."""

import json
import os
import pathlib
import re
import stat
import subprocess
import time

import pytest
import cpprunctl
from conftest import free_port
from cpprunctl import CTL

FAILING = 'echo "ValueError: bad <batch>" >&2; exit 7'


def ctl(jobs, *args, env=None):
    return cpprunctl.ctl(*args, env=jobs.env(env))


def finish(jobs, name, worker, *flags):
    """A job that has ended."""
    run_id = f'{name}-{os.getpid()}-{time.monotonic_ns()}'
    args = ('--standalone', f'--job-name={run_id}', *flags, '--no-python')
    job = jobs.cpprun(*args, jobs.sh(worker))
    job.done(100)
    return run_id


def row_of(text, run_id):
    lines = [line.split() for line in text.splitlines() if line.startswith(run_id)]
    assert len(lines) == 1, text
    return lines[0]


def test_failed_job_is_in_the_list_of_all(jobs):
    run_id = finish(jobs, 'broken', FAILING, '--redirects=3')
    assert run_id not in ctl(jobs, 'ps').stdout
    row = row_of(ctl(jobs, 'ps', '-a').stdout, run_id)
    assert row[1:5] == ['failed', '1', '1', '0/0'] and 'ago' in row
    (found,) = [
        job
        for job in json.loads(ctl(jobs, 'ps', '-a', '--json').stdout)['finished']
        if job['run_id'] == run_id
    ]
    assert (found['job_state'], found['outcome'], found['exit_code']) == ('failed', 'failure', 1)


@pytest.mark.parametrize(
    'flags, is_kept',
    [
        (('-r', '3'), True),
        (('-r', '1', '-t', '2'), True),
        (('-r', '1:3', '--nproc-per-node=2'), True),
        (('-r', '3', '-t', '3'), False),
        ((), False),
    ],
)
def test_output_that_was_shown_nowhere_is_kept_after_success(jobs, flags, is_kept):
    job = jobs.cpprun('--standalone', *flags, '--no-python', jobs.sh('echo a line'))
    assert job.done(100) == 0, job.output
    kept = re.findall(r'^note: the logs of this run are kept in (\S+)$', job.err, re.M)
    assert len(kept) == is_kept, job.err
    for folder in kept:
        last = max(pathlib.Path(folder, 'attempt_0').iterdir())
        assert (last / 'stdout.log').read_text() == 'a line\n'


def test_log_folder_of_a_job_that_succeeded(jobs):
    logs = jobs.folder / 'logs'
    run_id = finish(jobs, 'fine', 'exit 0', f'--log-dir={logs}')
    assert run_id not in ctl(jobs, 'ps', '-a').stdout
    assert row_of(ctl(jobs, 'ps', '--log-dir', logs).stdout, run_id)[1] == 'succeeded'


def test_events_of_a_finished_job_by_the_beginning_of_its_name(jobs):
    run_id = finish(jobs, 'broken', FAILING, '--redirects=3')
    shown = ctl(jobs, 'events', run_id[:-3])
    assert f"job '{run_id}' begins" in shown.stdout, shown.stderr
    missing = ctl(jobs, 'events', 'no-such-job')
    assert missing.returncode == 1 and 'no job of that name runs here' in missing.stderr


def test_colours_are_a_choice(jobs):
    run_id = finish(jobs, 'broken', FAILING, '--redirects=3')
    plain = ctl(jobs, 'events', run_id).stdout
    assert '\x1b' not in plain and 'finished: failed, exit code 1' in plain
    for args in (('--color=always', 'events', run_id), ('events', run_id, '--color', 'always')):
        colored = ctl(jobs, *args, env={'NO_COLOR': '1'}).stdout
        assert '\x1b[1;31mfinished: failed' in colored
    assert '\x1b[1;31mfailed\x1b[0m' in ctl(jobs, 'ps', '-a', '--color=always').stdout
    error = ctl(jobs, 'events', 'no-such-job', '--color=always').stderr
    assert error.startswith('\x1b[1;31merror:\x1b[0m ')


def test_report_has_what_a_colleague_needs(jobs):
    run_id = finish(jobs, 'broken', FAILING, '--redirects=3')
    page = jobs.folder / 'report.html'
    done = ctl(jobs, 'report', run_id, '--output', page)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f'{page}\n' and 'look at the file' in done.stderr
    text = page.read_text()
    for expected in (
        f'cpprun report of job {run_id}',
        'outcome    failed, exit code 1',
        'error: ',
        'attempt_0/0/stderr.log',
        'ValueError: bad &lt;batch&gt;',
        'exited with code 7',
        'cpprun 0.',
        '<h2>Machine</h2>',
    ):
        assert expected in text, expected
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    again = ctl(jobs, 'report', run_id, '--output', page)
    assert again.returncode == 1 and 'exists\nhint: ' in again.stderr


def test_report_of_a_running_job_has_its_command_without_secrets(jobs):
    worker = jobs.sh('echo $$ >"$MARKS/up"; exec sleep 600')
    secrets = {'NCCL_DEBUG': 'WARN', 'CPPRUN_ADMIN_TOKEN': 'a token of sixteen characters'}
    job = jobs.cpprun('--standalone', '--no-python', worker, '--api-key=12345', env=secrets)
    jobs.mark('up')
    (agent,) = [
        agent
        for agent in json.loads(ctl(jobs, 'ps', '--json').stdout)['agents']
        if agent['pid'] == job.pid
    ]
    page = jobs.folder / 'report.html'
    assert ctl(jobs, 'report', agent['run_id'], '-o', page).returncode == 0
    text = page.read_text()
    assert 'outcome    runs' in text and '--api-key=***' in text and 'NCCL_DEBUG=WARN' in text
    assert '12345' not in text and 'sixteen characters' not in text


def test_launcher_writes_the_report_at_the_end_of_the_job(jobs):
    page = jobs.folder / 'report.html'
    page.write_text('of an earlier job')
    run_id = finish(jobs, 'broken', FAILING, '--redirects=3', f'--report={page}')
    text = page.read_text()
    for expected in (
        f'cpprun report of job {run_id}',
        'outcome    failed, exit code 1',
        'ValueError: bad &lt;batch&gt;',
        f'--report={page}',
        'finished: failed, exit code 1',
    ):
        assert expected in text, expected
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert [path.name for path in jobs.folder.glob('.cpprun-report-*')] == []


def test_good_run_with_a_report_prints_nothing(jobs):
    link = jobs.folder / 'link.html'
    (jobs.folder / 'real.html').touch()
    link.symlink_to('real.html')
    job = jobs.cpprun('--standalone', f'--report={link}', '--no-python', jobs.sh('exit 0'))
    assert job.done(100) == 0
    assert job.out == '' and job.err == ''
    assert 'outcome    succeeded, exit code 0' in (jobs.folder / 'real.html').read_text()
    assert link.is_symlink()


def test_one_of_two_agents_writes_the_report(jobs):
    endpoint = f'--rdzv-endpoint=127.0.0.1:{free_port()}'
    args = ('--nnodes=2', '--rdzv-backend=c10d', endpoint, '--rdzv-id=pair', '--no-python')
    worker = jobs.sh('exit 0')
    pages = [jobs.folder / f'{node}.html' for node in 'ab']
    agents = [jobs.cpprun(f'--report={page}', *args, worker) for page in pages]
    assert [agent.done(200) for agent in agents] == [0, 0]
    (page,) = [page for page in pages if page.exists()]
    assert 'workers    2 on 2 nodes' in page.read_text()


@pytest.mark.parametrize('place', ['missing/report.html', '.'])
def test_report_that_cannot_be_written_is_an_error_before_the_job(jobs, place):
    worker = jobs.sh('touch "$MARKS/started"')
    flag = f'--report={jobs.folder / place}'
    job = jobs.cpprun('--standalone', flag, '--no-python', worker)
    assert job.done(100) == 1
    assert f'error: {flag}' in job.err and '\nhint: name a file in ' in job.err
    assert not (jobs.marks / 'started').exists()


@pytest.mark.parametrize('worker, outcome', [('exit 0', 'succeeded'), ('exit 5', 'failed')])
def test_top_ends_with_the_outcome(jobs, worker, outcome):
    until = jobs.sh(f'while [ ! -e "$MARKS/go" ]; do sleep 0.1; done; {worker}')
    run_id = f'top-{os.getpid()}-{time.monotonic_ns()}'
    job = jobs.cpprun('--standalone', f'--job-name={run_id}', '--no-python', until)
    command = [CTL, 'top', '-d', '0.1', '--sort=memory', run_id]
    jobs_of = lambda: run_id in ctl(jobs, 'ps').stdout  # noqa: E731
    end = time.monotonic() + 200
    while not jobs_of():
        assert time.monotonic() < end
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=jobs.env()) as top:
        assert top.stdout.readline() == f'job {run_id}\n'
        (jobs.marks / 'go').touch()
        shown = top.stdout.read()
    assert top.returncode == 0
    assert f'job {run_id} {outcome} after ' in shown, shown
    assert ('exited with code 5' in shown.split(f'{run_id} {outcome}')[1]) == (outcome == 'failed')
    job.done(100)
