"""events.jsonl, and its display by `cpprunctl events`."""

import json

from conftest import BIN, kill, poll
from cpprunctl import ctl
from launches import ROOT
from run_events import events_of_run

ORDER = ['run_started', 'round_formed', 'worker_started', 'worker_started', 'round_started']


def events_of(jobs, folder='logs'):
    """The events of the one run in a log folder, each checked for the common fields."""
    events = events_of_run(jobs.folder / folder)
    for event in events:
        assert event['time_us'] > 1_600_000_000_000_000
        assert event['mono_ns'] > 0
        assert event['node']
    return events


def names(events):
    return [event['event'] for event in events]


def only(events, name):
    return [event for event in events if event['event'] == name]


def events(jobs, *args):
    """The ended command `cpprunctl events`."""
    return ctl('events', *args, env=jobs.env())


def test_failure_and_its_restart(jobs):
    worker = jobs.sh(
        'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then\n'
        '  [ $RANK = 1 ] && exit 7; exec sleep 60\nfi'
    )
    log_dir = f'--log-dir={jobs.folder}/logs'
    running = jobs.cpprun('--nproc-per-node=2', '--max-restarts=1', log_dir, worker)
    assert running.done(60) == 0, running.output
    events = events_of(jobs)
    assert [name for name in names(events) if name != 'waiting'][:5] == ORDER
    first = only(events, 'round_formed')[0]
    assert (first['world_size'], first['group_size'], first['restart_count']) == (2, 1, 0)
    assert first['master_port'] > 0
    ends = only(events, 'worker_exited')
    assert [(end['rank'], end['exit_code']) for end in ends[:2]] == [(1, 7), (0, -15)]
    assert [end['is_stopped_by_us'] for end in ends[:2]] == [False, True]
    assert ends[1]['signal'] == 'SIGTERM'
    assert all(0 <= end['lived_ms'] < 60_000 for end in ends)
    (stopping,) = only(events, 'round_stopping')
    assert (stopping['round'], stopping['cause']) == (1, 'failure')
    assert 'exited with code 7' in stopping['why']
    assert [event['round'] for event in only(events, 'round_stopped')] == [1, 2]
    assert [event['restart_count'] for event in only(events, 'round_formed')] == [0, 1]
    assert names(events)[-3:] == ['job_result', 'goodput', 'finished']
    last = events[-1]
    assert (last['outcome'], last['exit_code'], last['restarts_used']) == ('success', 0, 1)
    times = [event['mono_ns'] for event in events if event['event'] != 'round_stopping']
    assert times == sorted(times)


def test_text_for_terminals_and_json_for_scripts(jobs):
    error = '{"message":"bad \\\\u001b[31mred"}'
    worker = jobs.sh(f"printf '{error}' >$TORCHELASTIC_ERROR_FILE; exit 1")
    running = jobs.cpprun(f'--log-dir={jobs.folder}/logs', worker)
    assert running.done(60) == 1, running.output
    for path in ('logs', next((jobs.folder / 'logs').iterdir()).name):
        where = jobs.folder / 'logs' if path == 'logs' else jobs.folder / 'logs' / path
        shown = events(jobs, where)
        assert shown.returncode == 0, shown.stderr
        assert 'round 1: 1 worker on 1 node,' in shown.stdout
        assert 'exited with code 1: bad red' in shown.stdout
        assert '\x1b' not in shown.stdout
    as_they_are = events(jobs, '--json', jobs.folder / 'logs').stdout.splitlines()
    assert [json.loads(line) for line in as_they_are] == events_of(jobs)


def test_running_job_is_found_and_followed_to_its_end(jobs):
    worker = jobs.sh('echo $$ >"$MARKS/pid"; exec sleep 60')
    running = jobs.cpprun(worker)
    (pid,) = jobs.numbers(['pid'])
    (path,) = jobs.tmp.glob('torchelastic_*/*/events.jsonl')
    following = jobs.start(BIN / 'cpprunctl', 'events', '--follow', path.parent)
    poll(lambda: 'all workers here are started' in following.output, 30, lambda: following.output)
    # Without a name: what runs here. That may be the job of a test beside this one, which starts.
    poll(
        lambda: 'all workers here are started' in events(jobs).stdout,
        30,
        lambda: events(jobs).stdout,
    )
    kill(pid)
    assert running.done(60) == 1
    assert following.done(60) == 0
    assert 'was killed by SIGKILL' in following.output
    assert 'finished: failed, exit code 1' in following.output


def test_full_events_file_is_reported_and_stops_nothing(jobs):
    """Files may have 700 bytes: enough for the first events, and for half of another."""
    log_dir = f'--log-dir={jobs.folder}/logs'
    limit = ('prlimit', '--fsize=700')
    running = jobs.cpprun('--nproc-per-node=8', log_dir, jobs.sh('exit 0'), wrap=limit)
    assert running.done(60) == 0, running.output
    assert running.err.count('events are missing in') == 1
    (path,) = (jobs.folder / 'logs').glob('*/events.jsonl')
    assert path.stat().st_size == 700
    shown = events(jobs, path)
    assert shown.returncode == 0
    assert 'begins' in shown.stdout


def test_missing_files_are_reported(jobs):
    for args, text in [(['nowhere'], 'nowhere does not exist, and no job of that name'),
                       ([jobs.tmp], 'no events.jsonl')]:
        shown = events(jobs, *args)
        assert shown.returncode == 1
        assert text in shown.stderr


# Connects after the agent has noted the spawn: else a busy agent may note both at once.
TRAINER = f"""
import glob, os, sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk/python')!r})
rank, attempt = os.environ['RANK'], int(os.environ['TORCHELASTIC_RESTART_COUNT'])
def rounds_started():
    paths = glob.glob('logs/*/events.jsonl')
    return sum(open(path).read().count('round_started') for path in paths)
while rounds_started() <= attempt:
    time.sleep(0.01)
import cpprun_worker as w
def marked(name):
    return os.path.exists(os.environ['MARKS'] + '/' + name)
w.report_ready()
w.report_resumed(7, '/somewhere')
w.heartbeat(7, w.EVALUATING)
w.heartbeat(8)
w.heartbeat(9)
open(os.environ['MARKS'] + f'/stepped-{{rank}}-{{attempt}}', 'w').write('x')
while not all(marked(f'stepped-{{r}}-{{attempt}}') for r in (0, 1)):
    time.sleep(0.01)
sys.exit(5 if attempt == 0 and rank == '1' else 0)
"""


def test_recovery_is_followed_to_the_first_step(jobs):
    log_dir = f'--log-dir={jobs.folder}/logs'
    args = ('--nproc-per-node=2', '--max-restarts=1', '--timing', log_dir)
    job = jobs.cpprun(*args, jobs.py(TRAINER))
    assert job.done(60) == 0, job.output
    until = {(e['cause'], e['until']): e for e in only(events_of(jobs), 'timing')}
    assert set(until) == {(cause, to) for cause in ('start', 'failure')
                          for to in ('spawn', 'first_step')}
    whole = until['failure', 'first_step']
    assert list(whole['phases_ms']) == ['detect', 'stop', 'form', 'spawn_first', 'spawn_last',
                                        'import', 'load', 'first_step']
    short = until['failure', 'spawn']['phases_ms']
    assert {name: whole['phases_ms'][name] for name in short} == short
    assert abs(whole['total_ms'] - sum(whole['phases_ms'].values())) < 0.1
    assert whole['phases_ms']['import'] > 0
    text = r'^timing: recovery \(failure\) .*: detect .*, import [\d.]+, load [\d.]+, first step '
    assert job.find(text), job.err
    assert 'made its first step' not in events(jobs, jobs.folder / 'logs').stdout, 'only with -v'
    detailed = events(jobs, '-v', jobs.folder / 'logs').stdout
    assert 'round 2 had made its first step within' in detailed


def test_worker_without_reports_has_no_first_step(jobs):
    """Reports of one rank are not enough: rank 1 sends none."""
    code = TRAINER.split('w.report_ready()')[0] + "rank == '0' and w.heartbeat(1)"
    log_dir = f'--log-dir={jobs.folder}/logs'
    job = jobs.cpprun('--nproc-per-node=2', log_dir, jobs.py(code))
    assert job.done(60) == 0, job.output
    assert [event['until'] for event in only(events_of(jobs), 'timing')] == ['spawn']
