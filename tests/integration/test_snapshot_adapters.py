"""Adapters of cpprun_worker.Snapshot with the real frameworks: a worker is killed, or the job is
stopped on request, and ends with the parameters of a run without failure.

The packages come from build/venv-frameworks (tools/deps.sh --frameworks) or FRAMEWORKS_PYTHON.
"""

import os
import signal

import pytest
from launches import ROOT
from long_tests import long
from test_python_snapshot import from_lines
from torch_python import PYTHON, has, training_env

SUPPORT = ROOT / 'tests' / 'support'
FRAMEWORKS = os.environ.get('FRAMEWORKS_PYTHON') or str(ROOT / 'build/venv-frameworks/bin/python')

CASES = {
    'lightning': ('lightning', 'lightning_worker.py', ('plain',)),
    'lightning-processes': ('lightning', 'lightning_worker.py', ('processes',)),
    'transformers': ('transformers', 'transformers_worker.py', ()),
    'accelerate': ('accelerate', 'accelerate_worker.py', ()),
    'dcp': ('torch', 'dcp_worker.py', ()),
}
RESUMABLE, STARTS_S = 75, 120


def python_of(package):
    """A Python with torch and this package."""
    python = next((each for each in (FRAMEWORKS, PYTHON) if has(each, package)), None)
    if python is None or not has(python, 'torch'):
        pytest.skip(f'not run: no Python here has {package}: tools/deps.sh --frameworks')
    return python


def start(jobs, case, folder, faults='', **env):
    package, worker, args = CASES[case]
    # Sockets of loaders with processes have names in TMPDIR, which must be short.
    env = training_env(f'torch,{package}', python_of(package), TMPDIR='/tmp', **env)
    env.update({'CPPRUN_FAULTS': faults} if faults else {})
    flags = ('--standalone', '--nproc-per-node=2', '--max-restarts=2')
    return jobs.cpprun(*flags, SUPPORT / worker, jobs.folder / folder, *args, env=env)


def train(jobs, case, folder, faults='', **env):
    job = start(jobs, case, folder, faults, **env)
    assert job.done() == 0, job.output
    found = set(job.wait_for_all(r'\] parameters (\w+)', 2))
    assert len(found) == 1
    return job, found.pop()


def steps_on_disk(jobs, folder):
    return sorted(int(each.name[5:]) for each in (jobs.folder / folder).glob('step-*'))


LONG = ['lightning-processes']


@pytest.mark.parametrize(
    'case', [pytest.param(case, marks=long) if case in LONG else case for case in CASES]
)
def test_a_killed_worker_resumes_exactly_from_memory(jobs, case):
    _, whole = train(jobs, case, 'whole')
    # The first kill is in the first epoch, the second in another.
    faults = 'kill:rank=1,step=8,attempt=0;kill:rank=0,step=27,attempt=1'
    job, parameters = train(jobs, case, 'runs', faults)
    starts = from_lines(job)
    assert starts[:2] == [(0, 'none')] * 2
    assert {where for _, where in starts[2:]} == {'memory'}
    (first,), (second,) = set(starts[2:4]), set(starts[4:])
    # A save is left out while the one before is still being written.
    assert 0 < first[0] <= 8 and 8 < second[0] <= 27, starts
    assert parameters == whole, job.output
    assert 'unreliable results' not in job.output


@pytest.mark.parametrize('case', ['lightning', 'transformers'])
def test_the_last_step_is_on_disk_and_more_epochs_continue_exactly(jobs, case):
    # The Trainer evaluates at its end, which draws random numbers; here the whole run does so too.
    env = {'DISK_EVERY': '1000', 'EVAL_STEPS': '10'}
    _, whole = train(jobs, case, 'whole', **env)
    assert steps_on_disk(jobs, 'whole')[-1] == 30
    _, two = train(jobs, case, 'runs', EPOCHS='2', **env)
    assert steps_on_disk(jobs, 'runs')[-1] == 20
    again, parameters = train(jobs, case, 'runs', EPOCHS='2', **env)
    assert parameters == two and '] step ' not in again.output
    job, parameters = train(jobs, case, 'runs', **env)
    assert set(from_lines(job)) == {(20, 'disk')}
    assert parameters == whole, job.output


@pytest.mark.parametrize('case', ['lightning', 'transformers', 'accelerate'])
def test_a_stop_request_saves_and_the_same_command_continues_exactly(jobs, case):
    _, whole = train(jobs, case, 'whole')
    job = start(jobs, case, 'runs', EVERY='1000')
    job.wait_for(r'\] step 5$', STARTS_S)
    job.send(signal.SIGTERM)
    assert job.done() == RESUMABLE, job.output
    (step,) = steps_on_disk(jobs, 'runs')
    assert 5 <= step < 30
    job, parameters = train(jobs, case, 'runs')
    assert set(from_lines(job)) == {(step, 'disk')}
    assert parameters == whole, job.output


def test_a_loader_of_lightning_with_a_state_of_its_own_is_refused(jobs):
    python = python_of('lightning')
    if not has(python, 'torchdata'):
        pytest.skip('not run: this Python has no torchdata: tools/deps.sh --test')
    args = (python, '-u', SUPPORT / 'lightning_worker.py', jobs.folder / 'runs', 'stateful')
    job = jobs.cpprun('--standalone', '--nproc-per-node=1', '--no-python', *args)
    assert job.done() == 1
    assert 'skips batches by itself, which a StatefulDataLoader with a state' in job.output


ACCUMULATED = f"""
import os, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch
from accelerate import Accelerator
from cpprun_worker import accelerate as snapshots
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=4)
model = torch.nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
loader = torch.utils.data.DataLoader(torch.ones(10, 1))
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
state = snapshots.snapshot(accelerator, 'runs', keep=10)
assert state.resume() == 0
for step, batch in enumerate(loader, 1):
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).sum())
        optimizer.step()
        optimizer.zero_grad()
    state.maybe_save(step, every=3)
    state.wait()
print(sorted(os.listdir('runs')))
"""


def test_accelerate_saves_nothing_while_it_accumulates_gradients(jobs):
    """A snapshot has no gradients, so training resumed with a part of a step left out."""
    code, output = jobs.run(python_of('accelerate'), '-c', ACCUMULATED)
    assert code == 0 and "['step-10', 'step-4', 'step-8']" in output, output
