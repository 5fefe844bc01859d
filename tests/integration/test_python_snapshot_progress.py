"""maybe_save() of cpprun_worker.Snapshot reports steps for programs that send no heartbeats."""

import pytest
from launches import ROOT
from test_goodput import goodputs, line_of
from torch_python import PYTHON, needs_torch, training_env

pytestmark = needs_torch

START = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, cpprun_worker
state = cpprun_worker.Snapshot('kept', extra={{'value': torch.zeros(3)}})
step = state.resume()
def train(last):
    global step
    while step < last:
        time.sleep(0.05)
        step += 1
        state.maybe_save(step, every=5)
"""


@pytest.fixture
def run(jobs):
    def started(code, *flags):
        fixed = ('--standalone', '--nproc-per-node=1', f'--log-dir={jobs.folder / "logs"}')
        worker = ('--no-python', jobs.script(START + code, PYTHON))
        return jobs.cpprun(*fixed, *flags, worker, env=training_env())

    return started


def test_its_steps_are_those_of_goodput(jobs, run):
    code = """
train(12)
state.wait()
if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':
    os._exit(3)
train(20)
state.wait()
"""
    job = run(code, '--max-restarts=1')
    assert job.done(150) == 0, job.err
    assert line_of(job).startswith('trained '), job.err
    last = goodputs(jobs)[-1]
    assert last['best_step'] == 20
    assert last['spent_ms']['redone'] > 0 and last['spent_ms']['unknown'] == 0


BUSY = """
def compute(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass
"""


def test_a_long_time_between_two_calls_is_no_hang(run):
    """Programs may call maybe_save() rarely, unlike heartbeat()."""
    job = run(BUSY + 'train(1)\ncompute(9)\ntrain(2)', '--hang-timeout=4')
    assert job.done(150) == 0, job.err
    assert 'hang' not in job.err


def test_heartbeats_of_the_program_count_instead(jobs, run):
    """Its steps are others, and a long time without them is a hang, also before the next one."""
    code = """
for number in range(100, 110):
    cpprun_worker.heartbeat(number)
    train(number - 99)
compute(60)
"""
    job = run(BUSY + code, '--hang-timeout=4')
    assert job.done(150) == 1, job.err
    assert 'no heartbeat for' in job.err and 'at step 109' in job.err, job.err
    assert goodputs(jobs)[-1]['best_step'] == 109


def test_steps_and_intervals_that_are_none_are_refused(run):
    code = """
import numpy
def attempt(*args):
    try:
        return state.maybe_save(*args)
    except (TypeError, ValueError) as error:
        print(error)
for wrong in (-1, 1 << 63, 1.5):
    attempt(wrong)
for every in (0, 100.0, None):
    attempt(1, every)
assert attempt(numpy.int64(20), numpy.int64(10), numpy.int64(10))
"""
    job = run(code)
    assert job.done(150) == 0, job.err
    assert job.out.splitlines() == [
        'step is -1; wanted is 0 to 9223372036854775807',
        f'step is {1 << 63}; wanted is 0 to 9223372036854775807',
        'step must be an integer, not float: 1.5',
        'every is 0; wanted is 1 to 9223372036854775807',
        'every must be an integer, not float: 100.0',
        'every must be an integer, not NoneType: None',
    ]
