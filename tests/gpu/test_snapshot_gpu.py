"""cpprun_worker.Snapshot of a model on a GPU: a training whose workers are killed ends with the
parameters of one without a failure."""

import re

import pytest
from conftest import SUPPORT, needs_nccl
from launches import kill

WORKER = SUPPORT / 'python_snapshot_worker.py'


def results(job, n):
    assert job.done(200) == 0, job.output
    found = re.findall(r'\] parameters (\w+)', job.output)
    assert len(found) == n and len(set(found)) == 1, job.output
    return found[0], job.find(r'\] state (\w+)')[1]


@pytest.mark.parametrize(('backend', 'n'), [('nccl', 1), ('nccl', 2), ('gloo', 2)])
@pytest.mark.parametrize('memory', [True, False])
def test_killed_training_ends_alike(jobs, backend, n, memory):
    if backend == 'nccl':
        needs_nccl(n)
    place = ('device=cuda', f'backend={backend}')
    expected = results(jobs.train(WORKER, *place, 'folder=undisturbed', 'every=1000', n=n), n)
    words = (*place, 'sleep=0.05', *([] if memory else ['flags=no-memory,waits']))
    job = jobs.train(WORKER, *words, n=n, flags=('--snapshot-dir=snapshots',))
    job.wait_for(r'step 13$', 200)
    kill(int(job.find(rf'\[rank {n - 1}\] started as process (\d+)')[1]))
    assert results(job, n) == expected
    resumed = re.findall(r'from (\d+) (\w+)', job.output)[n:]
    assert {int(step) for step, _ in resumed} <= {10, 15}, job.output
    assert {source for _, source in resumed} == {'memory' if memory else 'disk'}, job.output
