"""Sections of a program with hang limits of their own: named in the report, learned, nested."""

from test_hangs import root_cause, workers


def test_a_section_longer_than_its_limit_is_named(jobs):
    code = """
w.heartbeat(5)
if rank == '1':
    with w.section('epoch'):
        with w.section('checkpoint', limit=2):
            work_for_ever()
while True:
    w.heartbeat(5)
    time.sleep(0.01)
"""
    job = workers(jobs, code, '--hang-timeout=8')
    assert job.done(60) == 1
    rank, why = root_cause(job).groups()
    assert rank == '1'
    assert "in the section 'checkpoint' for" in why and 'its limit is 2' in why
    assert 'in work_for_ever' in job.err.split('the one to look at:')[1]


def test_a_section_that_ends_in_time_is_no_hang(jobs):
    code = """
w.heartbeat(5)
with w.section('checkpoint', limit=600):
    time.sleep(15)  # longer than the limit of heartbeats
for number in range(20):
    with w.section(f'part {number}', limit=600):  # more names than there is room for
        time.sleep(0.01)
w.heartbeat(6)
"""
    job = workers(jobs, code, '--hang-timeout=5')
    assert job.done() == 0


def test_a_section_of_another_thread_may_end_first(jobs):
    code = """
import threading
def load():
    with w.section('load', limit=600):
        loads.set()
        saves.wait()
loads, saves = threading.Event(), threading.Event()
thread = threading.Thread(target=load)
thread.start()
loads.wait()
with w.section('checkpoint', limit=2):
    saves.set()
    thread.join()
    w.heartbeat(5)
    time.sleep(60)
"""
    job = workers(jobs, code, '--hang-timeout=5', n=1)
    assert job.done(120) == 1, job.err
    assert "in the section 'checkpoint' for" in root_cause(job)[2]


def test_wrong_arguments_are_refused_without_an_agent(jobs):
    code = """
for name, limit in (('', None), (3, None), ('x', 0), ('x', -1), ('x', float('nan'))):
    try:
        with w.section(name, limit):
            raise SystemExit('no error')
    except (TypeError, ValueError):
        pass
with w.section('x'):
    print('inside')
"""
    job = workers(jobs, code, n=1, env={'CPPRUN_AGENT': ''})
    assert job.done() == 0 and 'inside' in job.out
