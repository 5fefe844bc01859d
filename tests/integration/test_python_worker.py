"""cpprun_worker, the module for Python training scripts, under a real cpprun and without one."""

import pathlib
import re
import signal
import sys


MODULE = pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'
INFO = {'LOGLEVEL': 'INFO'}

START = f"""
import os, signal, sys, time
sys.path.insert(0, {str(MODULE)!r})
import cpprun_worker as w
rank = os.environ.get('LOCAL_RANK', 'alone')
def say(text):
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


def test_the_last_heartbeat_of_a_failed_worker_is_told(jobs):
    code = 'w.heartbeat(41); w.heartbeat(42, w.SAVING); sys.exit(3 if rank == "1" else 0)'
    job = workers(jobs, code, env=INFO)
    assert job.done() == 1
    assert 'local rank 1 was at step 42 after 0 collectives; its last heartbeat came 0.' in job.err


def test_all_ready_is_noted(jobs):
    job = workers(jobs, 'w.ready(); w.ready()', n=3, env=INFO)
    assert job.done() == 0
    assert len(re.findall(r'all 3 workers are ready', job.err)) == 1


def test_a_notice_reaches_the_other_workers(jobs):
    code = """
if rank == '0':
    w.tell_snapshot(20, 'step-20')
until(lambda: w.newest_snapshot() == 20)
say(w.newest_snapshot())
"""
    job = workers(jobs, code)
    assert job.done() == 0
    assert sorted(job.out.splitlines()) == ['rank 0: 20', 'rank 1: 20']


def test_a_stop_and_no_leave_after_it(jobs):
    code = """
if rank == '0':
    until(lambda: marked('asked'))
    sys.exit(7)
signal.signal(signal.SIGTERM, lambda *_: None)
say(f'{w.may_commit(7)} {w.should_stop()}')
mark('asked')
until(w.should_stop)
say(f'{w.may_commit(8)}')
"""
    job = workers(jobs, code)
    assert job.done(20) == 1
    assert job.out.splitlines() == ['rank 1: True False', 'rank 1: False']
    assert 'the snapshot of step 8 is not committed: this round is being stopped' in job.err


def test_asked_to_stop_it_may_commit_and_ends_resumable(jobs):
    code = """
w.can_save()
mark('up-' + rank)
until(w.should_stop)
say(w.may_commit(7))
sys.exit(w.STOPPED_RESUMABLE)
"""
    job = workers(jobs, code)
    jobs.numbers(['up-0', 'up-1'])
    job.send(signal.SIGTERM)
    assert job.done() == 75
    assert sorted(job.out.splitlines()) == ['rank 0: True', 'rank 1: True']


def test_under_an_agent_sigterm_still_ends_it(jobs):
    code = """
w.can_save()
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
say(w.has_agent())
w.heartbeat(1); w.ready(); w.tell_snapshot(1, 'x')
say(f'{w.should_stop()} {w.may_commit(1)} {w.newest_snapshot()} {w.resume_path()}')
w.can_save()
os.kill(os.getpid(), signal.SIGTERM)
until(w.should_stop)
sys.exit(w.STOPPED_RESUMABLE)
"""
    program = jobs.script(START + code, f'{sys.executable} -ISu')
    for name in (None, 'cpprun/agent/none'):
        said = jobs.run(program, env={'CPPRUN_AGENT': name, 'CPPRUN_RESUME_FROM': None})
        assert said == (75, 'rank alone: False\nrank alone: False True None None\n')


def test_its_own_handler_of_sigterm_stays(jobs):
    code = """
signal.signal(signal.SIGTERM, lambda *_: sys.exit(4))
w.can_save()
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(20)
"""
    assert jobs.run(jobs.script(START + code, f'{sys.executable} -ISu'))[0] == 4


def test_the_resume_path_is_the_launchers(jobs):
    program = jobs.script(START + 'say(w.resume_path())', f'{sys.executable} -ISu')
    said = jobs.run(program, env={'CPPRUN_RESUME_FROM': '/snapshots/step-3'})
    assert said == (0, 'rank alone: /snapshots/step-3\n')


def test_an_agent_that_does_not_answer_gives_no_leave(jobs):
    code = """
assert w.has_agent()
mark('up')
until(lambda: marked('go'))
say(w.may_commit(1))
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
