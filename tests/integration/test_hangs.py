"""Workers that hang: detected, diagnosed before any action, reported, restarted. Limits are short
in tests with a hang; in tests without one they leave time for a busy machine.
"""

import os
import pathlib
import re
import signal
import subprocess
import time

from conftest import BIN, poll, read_bytes
from process_info import children_of

MODULE = pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'

START = f"""
import os, signal, sys, time
sys.path.insert(0, {str(MODULE)!r})
import cpprun_worker as w
rank = os.environ['RANK']
def wait_in_barrier():
    w.count_collective()
    time.sleep(120)
def work_for_ever():
    while True:
        pass
"""


def workers(jobs, code, *flags, n=2, **options):
    return jobs.cpprun(
        '--standalone', f'--nproc-per-node={n}', *flags, jobs.py(START + code), **options
    )


def root_cause(job):
    """The rank named as the first failure, and the reason."""
    unwrapped = re.sub(r'\n {12}', ' ', job.err)
    return re.search(r' hung on rank (\d+) \(.*\n  cause     (.*)', unwrapped)


def test_a_rank_stopped_by_a_signal_is_named(jobs):
    # It works until it is stopped: else its lack of CPU time may count from an earlier moment.
    code = """
while rank == '1' and time.process_time() < 0.5:
    pass
if rank == '1':
    os.kill(os.getpid(), signal.SIGSTOP)
time.sleep(120)
"""
    job = workers(jobs, code, '--hang-timeout=1')
    assert job.done(60) == 1
    assert root_cause(job)[1] == '1'
    assert 'stopped by a signal, such as SIGSTOP, for' in root_cause(job)[2]
    assert ' hung on rank ' in job.err
    assert re.search(r'rank 1 .*no heartbeats; stopped by a signal', job.err)
    assert 'FAILED' in job.err


def test_busy_loop_and_its_stack(jobs):
    code = 'w.heartbeat(5); work_for_ever() if rank == "1" else time.sleep(120)'
    job = workers(jobs, code, '--hang-timeout=1')
    assert job.done(60) == 1
    assert root_cause(job)[1] == '1'
    assert 'at step 5, training; it is busy, the others wait' in root_cause(job)[2]
    assert 'in work_for_ever' in job.err.split('the one to look at:')[1]


def test_rank_missing_in_a_barrier(jobs):
    code = """
w.heartbeat(5)
if rank != '1':
    wait_in_barrier()
time.sleep(120)
"""
    job = workers(jobs, code, '--hang-timeout=1', '--log-dir', jobs.folder / 'logs', n=3)
    assert job.done(60) == 1
    assert root_cause(job)[1] == '1'
    assert 'fewer collectives than the others (0)' in root_cause(job)[2]
    (report,) = (jobs.folder / 'logs').glob('*/hang_round_1.txt')
    text = report.read_text()
    assert text.count('in wait_in_barrier') == 2
    assert re.search(r'rank 0 .*: step 5, 1 collectives, last heartbeat', text)
    assert str(report) in job.err


def test_restart_with_its_own_counter(jobs):
    code = """
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':
    w.heartbeat(1)
    time.sleep(120)
sys.stdout.write('again\\n')
"""
    job = workers(jobs, code, '--hang-timeout=4', '--max-restarts=1')
    assert job.done(60) == 0
    assert job.out.count('again') == 2
    assert '(restart 1 of 1 after hangs)' in job.err


def test_program_without_heartbeats(jobs):
    worker = ('--no-python', jobs.sh('exec sleep 120'))
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', '--hang-timeout=1', *worker)
    assert job.done(60) == 1
    assert 'it sends no heartbeats, so no more is known' in root_cause(job)[2]
    assert 'kernel: waits in' in job.err


def test_sdk_worker_writes_its_own_stack(jobs):
    args = ('--standalone', '--nproc-per-node=2', '--hang-timeout=1', '--no-python')
    job = jobs.cpprun(*args, BIN / 'sdk_worker', 'spin', '1', env={'PATH': str(jobs.folder)})
    assert job.done(60) == 1
    assert root_cause(job)[1] == '1'
    assert 'spin_for_ever' in job.err.split('the one to look at:')[1]


def test_long_snapshot_is_no_hang(jobs):
    code = """
w.heartbeat(1)
if rank == '0':
    w.heartbeat(1, w.SAVING)
    end = time.monotonic() + 4.5
    with open(os.environ['MARKS'] + '/snapshot', 'w') as file:
        while time.monotonic() < end:
            file.write('x' * 9000)
            time.sleep(0.05)
    os.rename(os.environ['MARKS'] + '/snapshot', os.environ['MARKS'] + '/saved')
while not os.path.exists(os.environ['MARKS'] + '/saved'):
    time.sleep(0.05)
"""
    job = workers(jobs, code, '--hang-timeout=3')
    assert job.done(60) == 0, job.err
    assert 'hang' not in job.err


def switches(pid):
    """How often the agent's threads have gone to sleep; None while one is on its way there."""
    total = 0
    for path in pathlib.Path(f'/proc/{pid}/task').glob('*/status'):
        status = read_bytes(path)
        if b'\nState:\tS' not in status:
            return None
        total += int(re.search(rb'\nvoluntary_ctxt_switches:\s*(\d+)', status)[1])
    return total


def test_agent_sleeps_by_default(jobs):
    job = jobs.cpprun('--standalone', '--no-python', jobs.sh('echo $$ >$MARKS/up; exec sleep 120'))
    jobs.mark('up')
    poll(lambda: sleeps(job.process.pid), 60, 'two seconds without a wake-up')


def sleeps(pid):
    before = switches(pid)
    time.sleep(2)
    return switches(pid) == before


def test_rank_that_waits_for_its_debugger(jobs):
    worker = ('--no-python', jobs.sh('echo here $RANK $1 "$2"'))
    flags = ('--standalone', '--nproc-per-node=2', '--debug-rank=1', '--hang-timeout=1')
    job = jobs.cpprun(*flags, *worker, 'a', 'b  c')
    message = poll(lambda: re.search(r'rank 1 \(pid (\d+)\) waits for a debugger', job.err), 30)
    pid = int(message[1])
    poll(lambda: b'State:\tT' in read_bytes(f'/proc/{pid}/status'), 30, 'its stop')
    poll(lambda: 'here 0' in job.out, 30, 'the other rank')
    assert f'gdb -p {pid}' in job.err
    assert 'here 1' not in job.out
    os.kill(pid, signal.SIGCONT)
    assert job.done(30) == 0
    assert 'here 1 a b  c' in job.out
    assert not children_of(pid)


def test_missing_rank_to_debug_is_reported(jobs):
    flags = ('--standalone', '--nproc-per-node=2', '--debug-rank=2')
    job = jobs.cpprun(*flags, '--no-python', 'true')
    assert job.done() == 0
    assert '--debug-rank=2: no worker waits for a debugger, since ranks go from 0 to 1' in job.err


def test_bad_values_are_rejected(jobs):
    for flag in ('--hang-timeout=soon', '--hang-timeout=-1', '--debug-rank=-1', '--omp-threads=0'):
        job = jobs.cpprun('--standalone', flag, '--no-python', jobs.sh('true'))
        assert job.done() == 1
        assert flag.split('=')[0] in job.err


TIMER = """
import json
def set_timer(at, number):
    message = dict(version=1, pid=os.getpid(), scope_id='step', expiration_time=at, signal=number)
    with open(os.environ['TORCHELASTIC_TIMER_FILE'], 'w') as fifo:
        fifo.write(json.dumps(message) + '\\n')
"""


def test_expired_file_timer(jobs):
    code = TIMER + """
if rank == '1':
    set_timer(time.time() + 0.1, signal.SIGKILL)
else:
    set_timer(time.time() + 0.1, signal.SIGKILL)
    set_timer(-1, 0)
time.sleep(60)
"""
    fifo = jobs.folder / 'timers'
    env = {'TORCHELASTIC_ENABLE_FILE_TIMER': '1', 'TORCHELASTIC_TIMER_FILE': str(fifo)}
    job = workers(jobs, code, env=env)
    assert job.done(60) == 1
    assert re.search(r"the timer 'step' of process \d+ is over; it gets SIGKILL", job.err)
    assert re.search(r'failed on rank 1 .*\n  cause     killed by SIGKILL', job.err)
    assert not fifo.exists()


def test_file_timer_of_a_foreign_process_ends_no_worker(jobs):
    code = TIMER.replace('os.getpid()', 'int(os.environ["VICTIM"])') + """
set_timer(time.time(), signal.SIGKILL)
sys.stdout.write(os.environ['TORCHELASTIC_TIMER_FILE'])
"""
    with subprocess.Popen(['sleep', '60']) as victim:
        env = {'TORCHELASTIC_ENABLE_FILE_TIMER': '1', 'VICTIM': str(victim.pid)}
        job = workers(jobs, code, n=1, env=env)
        assert job.done(60) == 0
        assert re.fullmatch(rf'{jobs.tmp}/watchdog_timer_[-0-9a-f]{{36}}', job.out)
        assert victim.poll() is None
        victim.kill()
