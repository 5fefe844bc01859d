"""cpprun_worker.Snapshot of a state on a GPU, on simulated ones: torch.cuda's own streams, events
and copies, without kernels. tests/gpu/test_snapshot_gpu.py is the counterpart on a GPU.
"""

import re

import pytest
from launches import ROOT
from simulated_cuda import ENVIRONMENT, skip_unless_simulated
from torch_python import training_env

WORKER = ROOT / 'tests' / 'support' / 'simulated_cuda_worker.py'


def train(jobs, *args, n, flags=(), **env):
    command = ('--standalone', f'--nproc-per-node={n}', *flags, WORKER, *args)
    return jobs.cpprun(*command, env=training_env(**ENVIRONMENT, **env))


def parameters(job, n):
    assert job.done() == 0, job.output
    found = job.wait_for_all(r'\] parameters (\w+)', n)
    assert len(set(found)) == 1, job.output
    return found[0]


@pytest.fixture(autouse=True)
def _simulated():
    skip_unless_simulated()


@pytest.mark.parametrize('n', [1, 2])
def test_killed_training_resumes_exactly_from_copies_beside_it(jobs, n):
    expected = parameters(train(jobs, 'folder=undisturbed', n=n), n)
    flags = ('--max-restarts=2', '--snapshot-dir=snapshots')
    faults = f'kill:rank={n - 1},step=13,attempt=0;kill:rank=0,step=22,attempt=1'
    job = train(jobs, n=n, flags=flags, CPPRUN_FAULTS=faults)
    assert parameters(job, n) == expected
    starts = re.findall(r'\] from (\d+) (\w+)', job.output)[n:]
    assert {source for _, source in starts} == {'memory'}, job.output
    assert 'is pinned: True' in job.output
    assert 'while it was being copied' not in job.output


def test_memory_that_cuda_does_not_pin_serves_as_well(jobs):
    flags = ('--max-restarts=1', '--snapshot-dir=snapshots')
    env = {'SIMULATED_CUDA_REFUSES_TO_PIN': 'yes', 'CPPRUN_FAULTS': 'kill:rank=0,step=13,attempt=0'}
    job = train(jobs, 'steps=15', n=1, flags=flags, **env)
    assert parameters(job, 1) == parameters(train(jobs, 'steps=15', 'folder=undisturbed', n=1), 1)
    assert 'is pinned: False' in job.output
    assert re.findall(r'\] from \d+ (\w+)', job.output) == ['none', 'memory'], job.output


SHARDED = f"""
import os
import sys
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard
import cpprun_worker

rank = int(os.environ['RANK'])
dist.init_process_group('gloo')
rows = DTensor.from_local(
    torch.zeros(4, 8).to('cuda'), DeviceMesh('cuda', [0, 1]), [Shard(0)], run_check=False
)
model = torch.nn.Module()
model.rows = torch.nn.Parameter(rows)
state = cpprun_worker.Snapshot(model=model)
step = state.resume()
local = model.rows.to_local().detach()
values = local.cpu().unique().tolist()
print(f'[rank {{rank}}] from {{step}} {{state.source}} {{values}}', flush=True)
if step == 0:
    local.copy_(torch.full(local.shape, 10.0 + rank))
    assert state.save(5)
    dist.barrier()
    os._exit(1)
dist.destroy_process_group()
os._exit(0)
"""


def test_shards_on_several_gpus_resume_from_memory(jobs):
    script = jobs.folder / 'sharded.py'
    script.write_text(SHARDED)
    flags = ('--standalone', '--nproc-per-node=2', '--max-restarts=1', '--snapshot-dir=snapshots')
    job = jobs.cpprun(*flags, script, env=training_env(**ENVIRONMENT))
    assert job.done() == 0, job.output
    for rank in range(2):
        assert f'[rank {rank}] from 0 none [0.0]' in job.output
        assert f'[rank {rank}] from 5 memory [{10.0 + rank}]' in job.output, job.output
