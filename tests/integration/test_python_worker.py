"""cpprun_worker, the module for Python training scripts, under a real cpprun and without one."""

import os
import pathlib
import re
import signal
import subprocess
import sys


MODULE = pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'
INFO = {'LOGLEVEL': 'INFO'}

START = f"""
import os, signal, sys, time
sys.path.insert(0, {str(MODULE)!r})
import cpprun_worker as w
rank = os.environ.get('LOCAL_RANK', 'alone')
def report(text):
    sys.stdout.write(f'rank {{rank}}: {{text}}\\n')
def mark(name):
    with open(os.environ['MARKS'] + '/' + name, 'w') as file:
        file.write(str(os.getpid()))
def until(holds):
    end = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < end, 'waited in vain'
        time.sleep(0.002)
def marked(name):
    return os.path.exists(os.environ['MARKS'] + '/' + name)
"""


def workers(jobs, code, n=2, flags=(), **options):
    command = ('--standalone', f'--nproc-per-node={n}', *flags, jobs.py(START + code))
    return jobs.cpprun(*command, **options)


def test_last_heartbeat_of_a_failed_worker_is_reported(jobs):
    code = 'w.heartbeat(41); w.heartbeat(42, w.SAVING); sys.exit(3 if rank == "1" else 0)'
    job = workers(jobs, code, env=INFO)
    assert job.done() == 1
    assert 'local rank 1 was at step 42 after 0 collectives; its last heartbeat came 0.' in job.err


def test_all_ready_is_recorded(jobs):
    job = workers(jobs, 'w.report_ready(); w.report_ready()', n=3, env=INFO)
    assert job.done() == 0
    assert len(re.findall(r'all 3 workers are ready', job.err)) == 1


def test_notice_reaches_the_other_workers(jobs):
    code = """
if rank == '0':
    w.report_snapshot(20, 'step-20')
until(lambda: w.newest_snapshot() == 20)
report(w.newest_snapshot())
"""
    job = workers(jobs, code)
    assert job.done() == 0
    assert sorted(job.out.splitlines()) == ['rank 0: 20', 'rank 1: 20']


def test_stop_ends_commit_permissions(jobs):
    code = """
if rank == '0':
    until(lambda: marked('asked'))
    sys.exit(7)
signal.signal(signal.SIGTERM, lambda *_: None)
report(f'{w.request_commit(7)} {w.should_stop()}')
mark('asked')
until(w.should_stop)
report(f'{w.request_commit(8)}')
"""
    job = workers(jobs, code)
    assert job.done(20) == 1
    assert job.out.splitlines() == ['rank 1: True False', 'rank 1: False']
    assert 'the snapshot of step 8 is not committed: this round is being stopped' in job.err


def test_stop_request_allows_a_commit_and_ends_resumable(jobs):
    code = """
w.enable_graceful_stop()
mark('up-' + rank)
until(w.should_stop)
report(w.request_commit(7))
sys.exit(w.STOPPED_RESUMABLE)
"""
    job = workers(jobs, code)
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 75
    assert sorted(job.out.splitlines()) == ['rank 0: True', 'rank 1: True']


def test_sigterm_still_ends_a_worker_under_an_agent(jobs):
    code = """
w.enable_graceful_stop()
if rank == '0':
    until(lambda: marked('up'))
    sys.exit(7)
mark('up')
time.sleep(60)
"""
    job = workers(jobs, code, flags=('--shutdown-timeout=60',))
    assert job.done(20) == 1
    assert 'SIGTERM' in job.err


def test_without_an_agent_every_call_works(jobs):
    code = """
report(w.has_agent())
w.heartbeat(1); w.report_ready(); w.report_snapshot(1, 'x')
report(f'{w.should_stop()} {w.request_commit(1)} {w.newest_snapshot()} {w.resume_path()}')
w.enable_graceful_stop()
os.kill(os.getpid(), signal.SIGTERM)
until(w.should_stop)
sys.exit(w.STOPPED_RESUMABLE)
"""
    program = jobs.script(START + code, f'{sys.executable} -ISu')
    for name in (None, 'cpprun/agent/none'):
        output = jobs.run(program, env={'CPPRUN_AGENT': name, 'CPPRUN_RESUME_FROM': None})
        assert output == (75, 'rank alone: False\nrank alone: False True None None\n')


WRONG_ARGUMENTS = """
def error_of(call, *args):
    try:
        call(*args)
    except (TypeError, ValueError) as error:
        return f'{type(error).__name__}: {error}'
class Step:
    def __index__(self):
        return 5
w.heartbeat(Step()); w.heartbeat(True)
assert w.request_commit(Step())
for wrong, name in ((1.5, 'float'), ('x', 'str'), (None, 'NoneType')):
    text = f'TypeError: step must be an integer, not {name}: {wrong!r}'
    for call in (w.heartbeat, w.request_commit, lambda n: w.report_snapshot(n, 'x'),
                 lambda n: w.report_resumed(n, 'x')):
        assert error_of(call, wrong) == text, error_of(call, wrong)
assert error_of(w.heartbeat, 1, 'x').startswith('TypeError: phase must be an integer')
assert error_of(w.heartbeat, 1, 6) == 'ValueError: phase is 6; wanted is 0 to 5'
assert error_of(w.heartbeat, 2**63).startswith('ValueError: step is 9223372036854775808; wanted')
assert error_of(w.report_snapshot, 1, 7).startswith('TypeError: path must be a string or a path')
assert error_of(w.fault_point, 'x').startswith('TypeError: epoch must be an integer')
report(f'{w.has_agent()} refused')
"""


def test_wrong_arguments_are_named_with_and_without_an_agent(jobs):
    alone = jobs.run(jobs.script(START + WRONG_ARGUMENTS, f'{sys.executable} -ISu'))
    assert alone == (0, 'rank alone: False refused\n')
    job = workers(jobs, WRONG_ARGUMENTS, n=1)
    assert job.done() == 0, job.err
    assert job.out == 'rank 0: True refused\n'


def fault_of(value):
    """The end of a program with this CPPRUN_FAULTS, and its stderr."""
    command = [sys.executable, '-ISc', START + 'w.fault_point(0, 0)']
    env = {**os.environ, 'CPPRUN_FAULTS': value}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


def test_faults_are_rejected_as_in_cpp():
    for value in ('exit:code=300', 'kill:rank=1;exit:code=256', 'slow:ms=86400001', 'explode'):
        code, err = fault_of(value)
        assert code == 1, value
        assert f"ValueError: CPPRUN_FAULTS is '{value}': '" in err
    assert fault_of('exit:code=255')[0] == 255
    for value in ('exit:epoch=0,code=9;', ';;exit:epoch=0,code=9'):
        assert fault_of(value)[0] == 9
    assert fault_of(';;') == (0, '')


def test_own_sigterm_handler_is_kept(jobs):
    code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
w.enable_graceful_stop()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(20)
"""
    assert jobs.run(jobs.script(START + code, f'{sys.executable} -ISu'))[0] == 4


def test_resume_path_comes_from_the_launcher(jobs):
    program = jobs.script(START + 'report(w.resume_path())', f'{sys.executable} -ISu')
    output = jobs.run(program, env={'CPPRUN_RESUME_FROM': '/snapshots/step-3'})
    assert output == (0, 'rank alone: /snapshots/step-3\n')


def test_silent_agent_permits_no_commit(jobs):
    code = """
assert w.has_agent()
mark('up')
until(lambda: marked('go'))
report(w.request_commit(1))
mark('asked')
"""
    job = workers(jobs, code, n=1)
    jobs.mark('up')
    job.send(signal.SIGSTOP)
    (jobs.marks / 'go').write_text('x')
    jobs.mark('asked', 30)
    job.send(signal.SIGCONT)
    assert job.done() == 0
    assert 'rank 0: False' in job.out
    assert 'the agent does not answer' in job.err
