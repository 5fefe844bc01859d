"""cpprun_worker.Snapshot of trainings that read their data through a DataLoader: each resumes
within an epoch, and ends with the parameters of one that was not interrupted.
"""

import tempfile

import pytest
from launches import ROOT
from test_python_snapshot import from_lines
from torch_python import needs_torch, training_env

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
