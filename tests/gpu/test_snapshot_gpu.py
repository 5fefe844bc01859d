"""cpprun_worker.Snapshot of a model on a GPU: a training whose workers are killed ends with the
parameters of one without a failure."""

import re

import pytest
from conftest import SUPPORT, needs_nccl
from launches import ROOT, kill

WORKER = SUPPORT / 'python_snapshot_worker.py'


def results(job, n):
    assert job.done(200) == 0, job.output
    found = re.findall(r'\] parameters (\w+)', job.output)
    assert len(found) == n and len(set(found)) == 1, job.output
    return found[0], job.find(r'\] state (\w+)')[1]


ARENA = """
import sys
sys.path.insert(0, sys.argv[1])
import torch, cpprun_worker
model = torch.nn.Linear(2000, 2000, device='cuda')
optimizer = torch.optim.AdamW(model.parameters())
state = cpprun_worker.Snapshot(model=model, optimizer=optimizer)
for step in range(1, 5):
    model(torch.randn(8, 2000, device='cuda')).pow(2).mean().backward()
    optimizer.step()
    state.save(step)
view = torch.frombuffer(state._memory._arena.view, dtype=torch.uint8)
print('pinned', view.is_pinned())
print('beside', len(state._state._fence._optimizers))
"""


def test_the_arena_is_pinned(jobs):
    sdk = ROOT / 'worker_sdk' / 'python'
    job = jobs.train(jobs.script(ARENA), sdk, n=1, flags=('--snapshot-dir=snapshots',))
    assert job.done(200) == 0, job.output
    assert 'pinned True' in job.output and 'beside 1' in job.output


@pytest.mark.parametrize('n', [1, 2])
def test_a_save_at_each_step_beside_the_training(jobs, n):
    """Most copies run while the next step is computed."""
    place = ('device=cuda', 'backend=gloo', 'width=20000')
    expected = results(jobs.train(WORKER, *place, 'folder=undisturbed', 'every=1000', n=n), n)
    args = (*place, 'every=1', 'disk_every=10')
    job = jobs.train(WORKER, *args, n=n, flags=('--snapshot-dir=snapshots',))
    job.wait_for(r'step 13$', 200)
    kill(int(job.find(rf'\[rank {n - 1}\] started as process (\d+)')[1]))
    assert results(job, n) == expected
    sources = re.findall(r'from \d+ (\w+)', job.output)[n:]
    assert set(sources) == {'memory'}, job.output
    assert 'while it was being copied' not in job.output


@pytest.mark.parametrize(('backend', 'n'), [('nccl', 1), ('nccl', 2), ('gloo', 2)])
@pytest.mark.parametrize('memory', [True, False])
def test_killed_training_ends_alike(jobs, backend, n, memory):
    if backend == 'nccl':
        needs_nccl(n)
    place = ('device=cuda', f'backend={backend}')
    expected = results(jobs.train(WORKER, *place, 'folder=undisturbed', 'every=1000', n=n), n)
    args = (*place, 'sleep=0.05', *([] if memory else ['flags=no-memory,waits']))
    job = jobs.train(WORKER, *args, n=n, flags=('--snapshot-dir=snapshots',))
    job.wait_for(r'step 13$', 200)
    kill(int(job.find(rf'\[rank {n - 1}\] started as process (\d+)')[1]))
    assert results(job, n) == expected
    resumed = re.findall(r'from (\d+) (\w+)', job.output)[n:]
    assert {int(step) for step, _ in resumed} <= {10, 15}, job.output
    assert {source for _, source in resumed} == {'memory' if memory else 'disk'}, job.output
