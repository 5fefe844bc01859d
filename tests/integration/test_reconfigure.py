"""Process groups of torch 2.15 that get other members in the next round, by _reconfigure.py of
cpprun_worker. The worker is tests/support/reconfigure_worker.py. Each test of in-process restart
uses them as well where TORCH_PYTHON has that torch, as in stage newest.
"""

import re
import subprocess

import pytest
from elastic_jobs import kill_again_and_again
from launches import ROOT, free_port
from torch_python import PYTHON

WORKER = ROOT / 'tests' / 'support' / 'reconfigure_worker.py'
CHECK = 'import torch.distributed as dist; dist._reconfigure'
HAS_RECONFIGURE = subprocess.run([PYTHON, '-c', CHECK], check=False, capture_output=True)

needs_reconfigure = pytest.mark.skipif(
    HAS_RECONFIGURE.returncode != 0,
    reason='only with tools/test.sh newest: _reconfigure needs torch 2.15',
)

ALL_NEW = [('0', 'new'), ('1', 'new'), ('2', 'new')]


def train(jobs, *args, rendezvous=('--standalone',)):
    own = {'OMP_NUM_THREADS': '1', 'PYTHON_EXEC': PYTHON}
    fixed = ('--nproc-per-node=3', '--max-restarts=3', '--preload=torch')
    return jobs.cpprun(*rendezvous, *fixed, WORKER, *args, env=own)


def kill_two(job, *ranks):
    """The process of rank 0 has the store."""
    kill_again_and_again(job, ranks, n=3)
    assert job.done() == 0, job.output
    assert re.findall(r'sum (\d+)$', job.output, re.MULTILINE) == ['3'] * 3


def groups(job):
    """(rank, kind), ordered by round, and by rank in a round."""
    line = r'\[rank (\d)\] group (\w+) of (\d+), initialized before: (\w+)$'
    found = re.findall(line, job.output, re.MULTILINE)
    assert {(ranks, was_there) for _, _, ranks, was_there in found} == {('012', 'False')}
    return [sorted((rank, kind) for rank, kind, _, _ in found[at : at + 3]) for at in (0, 3, 6)]


@needs_reconfigure
def test_survivors_keep_their_group(jobs):
    job = train(jobs)
    kill_two(job, 0, 2)
    assert groups(job) == [
        ALL_NEW,
        [('0', 'new'), ('1', 'kept'), ('2', 'kept')],
        [('0', 'kept'), ('1', 'kept'), ('2', 'new')],
    ]


@needs_reconfigure
def test_store_of_a_fixed_port_is_new_in_each_round(jobs):
    fixed = ('--rdzv-backend=static', f'--master-port={free_port()}')
    job = train(jobs, rendezvous=fixed)
    kill_two(job, 2, 1)
    assert groups(job)[2] == [('0', 'kept'), ('1', 'new'), ('2', 'kept')]


@needs_reconfigure  # before, the second group may meet the store of the first one as it ends
def test_group_may_be_made_twice_in_a_round(jobs):
    job = train(jobs, 'twice')
    kill_two(job, 0, 2)
    assert groups(job) == [ALL_NEW] * 3


def test_program_may_make_its_group_itself(jobs):
    job = train(jobs, 'own')
    kill_two(job, 0, 0)
    assert groups(job) == [ALL_NEW] * 3
