"""Stop requests: SIGTERM to an agent lets its workers save; exit code 75 after the save."""

import os
import re
import signal
import time

from channel_workers import built, workers  # noqa: F401
from conftest import free_port, is_alive, poll
from launches import ROOT
from snapshot_folders import make_snapshot

CONTINUES = 'the same command continues'
RESUMABLE = 75


def saver(code):
    """A Python worker that ends with this code when SIGTERM comes."""
    return f"""
import os, signal, sys, time
def save(*_):
    sys.exit({code})
signal.signal(signal.SIGTERM, save)
open(os.environ['MARKS'] + '/up-' + os.environ['RANK'], 'w').write(str(os.getpid()))
time.sleep(60)
"""


def test_worker_that_can_save_is_asked_instead_of_signalled(jobs):
    job = workers(jobs, 2, 'ignore-term', 'can-save', 'mark=up-${local_rank}', 'await-stop',
                  'exit=75')
    pids = jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE
    assert sorted(job.out.splitlines()) == ['rank 0: stopping', 'rank 1: stopping'], 'no TERM'
    assert f'stopped on request; the workers have saved, and {CONTINUES}' in job.err
    assert 'FAILED' not in job.err and 'exited with code 75' not in job.err
    assert not any(is_alive(pid) for pid in pids)


def test_snapshot_with_the_work_is_named_and_resumed(jobs):
    folder = jobs.folder / 'snapshots'
    flags = (f'--snapshot-dir={folder}',)
    args = ('can-save', 'mark=up-0', 'await-stop', 'mark=stopping', 'await=saved', 'exit=75')
    job = workers(jobs, 1, *args, flags=flags)
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    jobs.mark('stopping')
    make_snapshot(folder, 120)
    (jobs.marks / 'saved').write_text('x')
    assert job.done() == RESUMABLE
    assert f'stopped on request at step 120; {CONTINUES} from it ({folder}/step-120)' in job.err

    again = jobs.cpprun('--standalone', *flags, '--no-python', 'printenv', 'CPPRUN_RESUME_FROM',
                        'CPPRUN_SNAPSHOT_DIR')
    assert again.done() == 0
    assert again.out.split() == [f'{folder}/step-120', str(folder)]


def test_saving_worker_may_commit(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'may-commit', 'exit=75')
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE
    assert 'rank 0: may commit' in job.out


def test_other_workers_get_the_signal(jobs):
    job = workers(jobs, 2, 'ignore-term', 'mark=up-${local_rank}', 'await-term', 'exit=0')
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM
    assert job.out.count('TERM') == 2
    assert 'ended by SIGTERM' in job.err


def test_python_workers_save_on_the_signal(jobs):
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', *jobs.py(saver(RESUMABLE)))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE
    assert CONTINUES in job.err


def test_other_exit_codes_mean_not_saved(jobs):
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', *jobs.py(saver(0)))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM


def test_resumable_code_without_a_request_is_a_failure(jobs):
    job = workers(jobs, 1, 'exit=75', flags=('--max-restarts=1',))
    assert job.done() == 1
    assert 'exited with code 75' in job.err and '  restarts  1 of 1 used' in job.err


def test_unrequested_save_is_ended(jobs):
    """One fails while the other still saves: the other gets SIGTERM immediately, not after the
    grace."""
    args = ('can-save', 'mark=up-${local_rank}', 'await-stop', 'await=${local_rank}', 'exit=3')
    job = workers(jobs, 2, *args, flags=('--shutdown-timeout=3600',))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    (jobs.marks / '0').write_text('x')
    assert job.done() == 128 + signal.SIGTERM


def test_ctrl_c_kills_saving_workers(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'mark=stopping', 'await=never',
                  flags=('--shutdown-timeout=600',))
    pid = int(jobs.mark('up-0'))
    job.send(signal.SIGTERM)
    jobs.mark('stopping')
    job.send(signal.SIGINT)
    assert job.done() == 128 + signal.SIGTERM
    assert not is_alive(pid)


AGAIN = [signal.SIGTERM, signal.SIGCONT, signal.SIGTERM]  # as Slurm, within 20 ms


def test_repeated_requests_of_schedulers(jobs):
    args = ('can-save', 'mark=up-${local_rank}', 'await-stop', 'mark=stopping-${local_rank}',
            'await=go', 'exit=75')
    job = workers(jobs, 2, *args, flags=('--shutdown-timeout=600',))
    jobs.numbers(['up-0', 'up-1'])
    for number in AGAIN:
        job.send(number)
    jobs.numbers(['stopping-0', 'stopping-1'])
    for number in (*AGAIN, signal.SIGHUP):  # and again, in the middle of the save
        job.send(number)
    (jobs.marks / 'go').write_text('x')
    assert job.done() == RESUMABLE
    assert 'the workers have saved' in job.err


def test_python_workers_get_the_signal_once(jobs):
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', *jobs.py("""
import os, signal, sys, time
count = 0
def save(*_):
    global count
    count += 1
signal.signal(signal.SIGTERM, save)
marks = os.environ['MARKS'] + '/'
open(marks + 'up-' + os.environ['RANK'], 'w').write('1')
while count == 0:
    time.sleep(0.01)
open(marks + 'saving-' + os.environ['RANK'], 'w').write('1')
while not os.path.exists(marks + 'go'):
    time.sleep(0.01)
sys.exit(75 if count == 1 else 1)
"""))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    jobs.numbers(['saving-0', 'saving-1'])
    job.send(signal.SIGTERM)
    (jobs.marks / 'go').write_text('x')
    assert job.done() == RESUMABLE


def test_grace_counts_from_the_first_signal(jobs):
    """However often the signal comes, workers without a save are killed at the end of the grace."""
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'await=never',
                  flags=('--shutdown-timeout=2',))
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    until = time.monotonic() + 60
    while job.process.poll() is None and time.monotonic() < until:
        time.sleep(0.1)
        job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM


# ---------------------------------------------------------------- nothing to save


def test_drain_before_any_worker_started(jobs):
    meet = ('--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    job = jobs.cpprun(*meet, jobs.sh('exit 0'), env={'LOGLEVEL': 'INFO'})
    poll(lambda: 'waiting: 1 of at least 2 nodes' in job.err, 60, what='its wait')
    job.send(signal.SIGTERM)
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE, job.output
    assert re.search(r'stopped on request while waiting \(1 of .*; no worker was started; '
                     rf'nothing is lost, and {CONTINUES}', job.err)


def test_drain_of_workers_with_zero_reported_steps(jobs):
    job = workers(jobs, 2, 'starting=0', 'ready', 'mark=up-${local_rank}', 'await=never')
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE, job.output
    assert f'stopped on request; nothing is lost, and {CONTINUES}' in job.err


def test_drain_after_one_worker_made_a_step(jobs):
    args = ('starting=0', 'only-beat=1', 'mark=up-${local_rank}', 'await=never')
    job = workers(jobs, 2, *args)
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM, job.output


def test_drain_when_one_worker_reports_no_steps(jobs):
    job = workers(jobs, 2, 'ready', 'can-save', 'mark=up-${local_rank}', 'await=never',
                  flags=('--shutdown-timeout=1',))
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM, job.output


STEPS_ONCE = """
import os, sys, time
rank, round = os.environ['RANK'], int(os.environ['CPPRUN_ROUND'])
marks = os.environ['MARKS'] + '/'
if round == 1:
    sys.path.insert(0, os.environ['SDK'])
    import cpprun_worker
    cpprun_worker.heartbeat(1)
    open(f'{marks}stepped-{rank}', 'w').write('1')
    while not all(os.path.exists(f'{marks}stepped-{r}') for r in '01'):
        time.sleep(0.01)
    sys.exit(5 if rank == '0' else time.sleep(60))
open(f'{marks}again-{rank}', 'w').write('1')
time.sleep(60)
"""


def test_drain_of_workers_with_steps_of_an_earlier_round(jobs):
    """They are importing, and not connected to the agent yet."""
    env = {'SDK': str(ROOT / 'worker_sdk/python')}
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', '--max-restarts=1',
                      *jobs.py(STEPS_ONCE), env=env)
    jobs.numbers(['again-0', 'again-1'])
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE, job.output


def test_drain_while_a_round_reforms(jobs):
    """Of two nodes one has died: the other has stopped its workers, and waits for a second node."""
    run_id = f'again-{os.getpid()}-{time.monotonic_ns()}'
    meet = ('--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}',
            f'--rdzv-id={run_id}', '--max-restarts=3')
    sleeper = jobs.sh('echo $$ >"$MARKS/up-$RANK"; exec sleep 600')
    host = jobs.cpprun(*meet, sleeper, env={'LOGLEVEL': 'INFO'})
    poll(lambda: 'waiting: 1 of' in host.err, 60, what='its wait')
    other = jobs.cpprun(*meet, sleeper)
    pids = jobs.numbers(['up-0', 'up-1'])
    other.process.kill()
    poll(lambda: not any(is_alive(pid) for pid in pids), 60, what='the end of the round')
    poll(lambda: host.err.count('waiting: 1 of') == 2, 60, what='its wait for another node')
    host.send(signal.SIGTERM)
    assert host.done() == RESUMABLE, host.output


def test_grace_ends_a_slow_save(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await-stop', 'await=never',
                  flags=('--shutdown-timeout=1',))
    jobs.mark('up-0')
    job.send(signal.SIGTERM)
    assert job.done() == 128 + signal.SIGTERM


def test_ctrl_c_asks_for_no_save(jobs):
    job = workers(jobs, 1, 'can-save', 'mark=up-0', 'await=never')
    jobs.mark('up-0')
    job.send(signal.SIGINT)
    assert job.done() == 128 + signal.SIGINT
