"""cpprun_worker.Snapshot of trainings that read their data through a DataLoader: each resumes
within an epoch, and ends with the parameters of one that was not interrupted.
"""

import tempfile

import pytest
from launches import ROOT
from test_python_snapshot import from_lines
from torch_python import PYTHON, needs_torch, training_env

pytestmark = needs_torch

WORKER = ROOT / 'tests' / 'support' / 'python_loader_worker.py'
EPOCH = 4  # steps of two ranks: 50 samples each, in batches of 16


def train(jobs, kind, n, folder, *args, restarts=0, faults=''):
    command = ('--standalone', f'--nproc-per-node={n}', f'--max-restarts={restarts}', WORKER)
    # The loaders' processes have sockets in TMPDIR, and the path of a socket has 107 bytes at most.
    with tempfile.TemporaryDirectory(prefix='cpprun-', dir='/tmp') as short:
        env = training_env(CPPRUN_FAULTS=faults, TMPDIR=short)
        job = jobs.cpprun(*command, f'kind={kind}', f'folder={folder}', *args, env=env)
        assert job.done() == 0, job.output
    return job


def parameters(job):
    (found,) = set(job.wait_for_all(r'\] parameters (\w+)', 1))
    return found


@pytest.mark.parametrize('kind', ['sampler', 'generator', 'workers'])
def test_a_sampler_within_and_at_the_end_of_an_epoch(jobs, kind):
    whole = parameters(train(jobs, kind, 2, 'whole'))
    faults = f'kill:rank=1,step={EPOCH + 2},attempt=0;kill:rank=0,step={3 * EPOCH},attempt=1'
    job = train(jobs, kind, 2, 'killed', restarts=2, faults=faults)
    assert [step for step, _ in from_lines(job)[2::2]] == [EPOCH + 2, 3 * EPOCH]
    assert parameters(job) == whole


def test_a_stateful_loader_within_and_at_the_end_of_an_epoch(jobs):
    whole = parameters(train(jobs, 'stateful', 1, 'whole'))
    steps = 7  # of an epoch: 100 samples
    for end in (steps + 2, 3 * steps):
        train(jobs, 'stateful', 1, 'parts', f'steps={end}')
    job = train(jobs, 'stateful', 1, 'parts')
    assert from_lines(job) == [(3 * steps, 'disk')]
    assert parameters(job) == whole


STATEFUL = f"""
import sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import cpprun_worker, torch
from torchdata.stateful_dataloader import StatefulDataLoader

def new(kind, processes):
    sampler = kind(range(23), 2, 0)
    return sampler, StatefulDataLoader(range(23), 2, sampler=sampler, num_workers=processes)

def rest_of(kind, processes, count):
    sampler, loader = new(kind, processes)
    sampler.set_epoch(1)
    begun = iter(loader)
    got = [next(begun).tolist() for _ in range(count)]
    assert cpprun_worker.Snapshot('runs', per_rank={{'loader': loader}}).save(1)
    drawn = torch.rand(1)
    whole = got + [batch.tolist() for batch in begun]
    sampler, loader = new(kind, processes)
    assert cpprun_worker.Snapshot('runs', per_rank={{'loader': loader}}).resume() == 1
    sampler.set_epoch(1)
    begun = iter(loader)
    print(torch.equal(torch.rand(1), drawn), got + [batch.tolist() for batch in begun] == whole)

for count in 1, 3, 5:
    rest_of(cpprun_worker.DistributedSampler, 1, count)
    rest_of(torch.utils.data.DistributedSampler, 0, count)
"""


def test_a_stateful_loader_with_a_sampler_that_has_epochs(jobs):
    """cpprun's: samples that the loader had taken early were counted twice. torch's: training went
    on in the order of epoch 0."""
    with tempfile.TemporaryDirectory(prefix='cpprun-', dir='/tmp') as short:
        code, output = jobs.run(PYTHON, '-c', STATEFUL, env={'TMPDIR': short})
    assert (code, output) == (0, 'True True\n' * 6)
