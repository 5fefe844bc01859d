"""torch's flight recorder at a hang, with real torch and Gloo: dumped by cpprun_worker's thread,
kept for torchfrtrace, compared. NCCL is not run here."""

import glob
import os
import pathlib
import pickle

import pytest

from conftest import PYTHON
from test_hangs import root_cause
from torch_python import start_script

MODULE = pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'

TRAIN = f"""
import os, sys, time
sys.path.insert(0, {str(MODULE)!r})
import torch
import torch.distributed as dist
import cpprun_worker as w

dist.init_process_group('gloo')
rank = dist.get_rank()
ones = torch.ones(3)
dist.all_reduce(ones)
w.heartbeat(1)
"""


@pytest.fixture
def torch_jobs(jobs):
    pytest.importorskip('torch', reason='torch is not installed')
    return jobs


def hangs(jobs, code, logs):
    path = f'{pathlib.Path(PYTHON).parent}:{os.environ["PATH"]}'
    flags = ('--hang-timeout=5', f'--log-dir={logs}')
    job = start_script(jobs, TRAIN + code, *flags, n=3, PATH=path)
    assert job.done(300) == 1
    return job, root_cause(job).groups()


def test_a_rank_that_misses_a_collective_is_named_with_its_number(torch_jobs, tmp_path):
    logs = tmp_path / 'logs'
    job, (rank, why) = hangs(torch_jobs, 'dist.barrier() if rank != 1 else time.sleep(600)\n', logs)
    assert rank == '1'
    assert "torch's flight recorder: rank 1 has not come to collective 2" in why
    assert 'in which ranks 0, 2 wait' in why and 'gloo:all_reduce' in why
    (folder,) = glob.glob(f'{logs}/*/hang_round_1_traces')
    assert sorted(os.listdir(folder)) == ['rank_0', 'rank_1', 'rank_2']
    dump = pickle.loads(pathlib.Path(folder, 'rank_0').read_bytes())
    assert [entry['collective_seq_id'] for entry in dump['entries']] == [1, 2]
    assert dump['entries'][0]['frames'][0]['name'] == 'all_reduce'
    # torch imports torch._inductor for the frames, unless that is prevented.
    (report,) = glob.glob(f'{logs}/*/hang_round_1.txt')
    assert '_inductor' not in pathlib.Path(report).read_text()
    assert folder in job.err


def test_a_rank_in_another_collective_is_named(torch_jobs, tmp_path):
    code = 'dist.broadcast(ones, 0) if rank != 2 else dist.all_gather([ones.clone()] * 3, ones)\n'
    code += 'dist.barrier()\ntime.sleep(600)\n'
    _, (_, why) = hangs(torch_jobs, code, tmp_path / 'logs')
    assert 'collective 2 of the group 0 default_pg differs: ' in why
    assert 'rank 2 has issued gloo:all_gather' in why
