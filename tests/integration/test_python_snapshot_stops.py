"""maybe_save() and stop requests: a script that knows nothing of them saves and ends with 75, and
the same command continues exactly.
"""

import signal

import pytest
from launches import ROOT
from test_python_snapshot import PYTHON, WORKER, from_lines, result, train, undisturbed
from test_python_snapshot_sharded import result as sharded_result
from test_python_snapshot_sharded import start as start_sharded
from torch_python import needs_torch, start_script

pytestmark = needs_torch

RESUMABLE, TERMINATED = 75, 128 + signal.SIGTERM
STARTS_S = 120
FLAGS = ('--snapshot-dir=runs',)


def stop(jobs, job, at=5):
    """Asks it to stop behind this step; the step of the only snapshot, which has the work."""
    job.wait_for(rf'step {at}$', STARTS_S)
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE, job.output
    (found,) = jobs.folder.glob('runs/step-*')
    step = int(found.name.removeprefix('step-'))
    assert at <= step < 30
    return step


@pytest.mark.parametrize('n', [1, 2])
def test_a_stop_request_saves_and_the_same_command_continues(jobs, n):
    # No save is due: what is resumed is the one of the stop.
    job = train(jobs, n, 'every=1000', 'sleep=0.2', flags=FLAGS)
    step = stop(jobs, job)
    message = f'stopped on request at step {step}; the same command continues from it'
    assert f'{message} ({jobs.folder}/runs/step-{step})' in job.err
    again = train(jobs, n, 'every=1000', flags=FLAGS)
    assert result(again, n) == undisturbed(jobs, n)
    assert from_lines(again) == [(step, 'disk')] * n


def test_a_stop_beside_saves_by_time(jobs):
    job = train(jobs, 2, 'every=300ms', 'keep=1', 'sleep=0.2', flags=FLAGS)
    step = stop(jobs, job)
    again = train(jobs, 2, flags=FLAGS)
    assert result(again, 2) == undisturbed(jobs, 2)
    assert from_lines(again) == [(step, 'disk')] * 2


def test_a_sharded_model_is_saved_on_request_too(jobs):
    whole = start_sharded(jobs, 2, 30, 'whole')
    assert whole.done() == 0, whole.output
    step = stop(jobs, start_sharded(jobs, 2, 30, 'runs', EVERY='1000'))
    again = start_sharded(jobs, 2, 30, 'runs')
    assert again.done() == 0, again.output
    assert sharded_result(again) == sharded_result(whole)
    assert from_lines(again) == [(step, 'disk')] * 2


def test_work_that_could_not_be_saved_is_not_reported_as_saved(jobs):
    (jobs.folder / 'file').write_text('')
    job = train(jobs, 2, 'folder=file/runs', 'every=1000', 'sleep=0.2')
    job.wait_for(r'step 5$', STARTS_S)
    job.send(signal.SIGTERM)
    assert job.done() == TERMINATED, job.output
    assert 'was not written: ' in job.output


SCRIPT = f"""
import atexit, os, sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, torch.distributed as dist
import cpprun_worker
atexit.register(print, 'at exit of the head')
dist.init_process_group('gloo')
state = cpprun_worker.Snapshot('runs', model=torch.nn.Linear(2, 2))
step = state.resume()
def one_step():
    global step
    time.sleep(0.05)
    step += 1
    state.maybe_save(step, every=1000)
    if dist.get_rank() == 0:
        print(f'step {{step}}', flush=True)
def forever():
    while True:
        one_step()
"""


def start(jobs, code, *flags):
    return start_script(jobs, SCRIPT + code, *flags, n=2)


def test_the_scripts_own_handlers_run_at_the_end(jobs):
    code = """
atexit.register(print, 'at exit')
try:
    forever()
finally:
    print('finally', flush=True)
    dist.destroy_process_group()
"""
    job = start(jobs, code, *FLAGS)
    stop(jobs, job)
    assert (job.out.count('finally'), job.out.count('at exit\n')) == (2, 2)
    assert job.out.count('at exit of the head') == 2


def test_a_script_that_handles_requests_itself_is_left_alone(jobs):
    code = """
cpprun_worker.enable_graceful_stop()
while True:
    one_step()
    wanted = torch.tensor(float(cpprun_worker.should_stop()))
    dist.all_reduce(wanted)
    if wanted > 0:
        one_step()
        one_step()
        print('own end', state.save(step), flush=True)
        os._exit(cpprun_worker.STOPPED_RESUMABLE)
"""
    job = start(jobs, code, *FLAGS)
    stop(jobs, job)
    assert job.out.count('own end True') == 2


def test_behind_the_loop_a_request_ends_the_program_at_once(jobs):
    """Nobody would save: the agent would wait for an hour, the shutdown timeout of this test."""
    code = """
for _ in range(10):
    one_step()
assert state.wait()
print('evaluates', flush=True)
time.sleep(3600)
"""
    job = start(jobs, code)
    job.wait_for_all('evaluates', 2, STARTS_S)
    job.send(signal.SIGTERM)
    assert job.done() == TERMINATED, job.output


def test_under_torchrun_a_signal_ends_the_program(jobs):
    """There SIGTERM also means that another worker has failed."""
    torchrun = (PYTHON, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node=2')
    args = ('folder=runs', 'sleep=0.2', 'every=1000')
    job = jobs.start(*torchrun, WORKER, *args, env={'OMP_NUM_THREADS': '1'})
    job.wait_for(r'step 5$', STARTS_S)
    job.send(signal.SIGTERM)
    job.done()
    assert not list(jobs.folder.glob('runs/step-*'))
