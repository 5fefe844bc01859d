"""cpprun_worker.Snapshot of a training with FSDP: exact, in the format of DCP."""

import pytest
from cpprunctl import ctl
from launches import ROOT
from long_tests import RUN_LONG, long
from test_python_snapshot import (
    KILLS,
    PYTHON,
    WORLDS,
    RandomKills,
    from_lines,
    is_forked,
)
from torch_python import needs_torch, training_env

pytestmark = needs_torch

WORKER = ROOT / 'tests' / 'support' / 'python_sharded_worker.py'


def start(jobs, n, steps, folder, mode='apart', restarts=2, **env):
    flags = ('--standalone', f'--nproc-per-node={n}', f'--max-restarts={restarts}')
    return jobs.cpprun(*flags, WORKER, steps, folder, mode, env=training_env(**env))


def train(jobs, n, steps, folder, mode='apart', faults='', **env):
    env.update({'CPPRUN_FAULTS': faults} if faults else {})
    job = start(jobs, n, steps, folder, mode, **env)
    assert job.done() == 0, job.output
    return job


def result(job):
    found = set(job.wait_for_all(r'\] parameters (\w+)', 1))
    assert len(found) == 1
    return found.pop()


@pytest.mark.parametrize('n', WORLDS)
def test_killed_workers_resume_exactly_from_memory(jobs, n):
    whole = result(train(jobs, n, 30, 'whole'))
    faults = 'kill:rank=1,step=13,attempt=0;kill:rank=0,step=24,attempt=1'
    job = train(jobs, n, 30, 'runs', faults=faults)
    assert result(job) == whole
    assert {where for _, where in from_lines(job)[n:]} == {'memory'}


@pytest.mark.parametrize('kind', ['flat', 'names'])
def test_a_model_of_fsdp1_resumes_exactly_and_with_another_number_of_ranks(jobs, kind):
    """The ranks' parts of an optimizer's state may have equal sizes: they were mistaken for one."""
    whole = train(jobs, 2, 20, 'whole', 'together', FSDP1=kind)
    fault = 'kill:rank=1,step=13,attempt=0'
    killed = train(jobs, 2, 20, 'runs', 'together', fault, FSDP1=kind)
    assert result(killed) == result(whole)
    assert {where for _, where in from_lines(killed)[2:]} == {'memory'}
    assert result(train(jobs, 2, 25, 'runs', 'together', FSDP1=kind)) != result(whole)
    alone = train(jobs, 1, 25, 'whole', 'together', FSDP1=kind)
    assert from_lines(alone) == [(20, 'disk')]
    sums = [float(job.find(r'sum (\S+)')[1]) for job in jobs.started]
    assert sums[3] == pytest.approx(sums[2], rel=1e-4)


def test_several_optimizers_resume_exactly(jobs):
    whole = result(train(jobs, 2, 20, 'whole', OPTIMIZERS='2'))
    fault = 'kill:rank=1,step=13,attempt=0'
    assert result(train(jobs, 2, 20, 'runs', faults=fault, OPTIMIZERS='2')) == whole


@pytest.mark.timeout(7200 if RUN_LONG else 600)
@pytest.mark.parametrize('n', [2, 4] if RUN_LONG else [2])
def test_random_kills_do_not_change_the_result(jobs, n):
    whole, count = result(train(jobs, n, 30, 'whole')), 0
    for seed in range(KILLS):
        if count >= KILLS:
            break
        folder = f'runs-{seed}'
        job = start(jobs, n, 30, folder, restarts=50, EVERY='2', are_forked=is_forked(seed))
        kills = RandomKills(job, jobs.folder / folder, n, seed)
        kills.run(4)
        assert job.done() == 0, job.output
        count += kills.count
        assert result(job) == whole, job.output
        assert ctl('snapshot', 'verify', jobs.folder / folder).returncode == 0
    print(f'{count} kills, {n} ranks of FSDP2')
    assert count >= KILLS


def test_another_world_size_and_dcp_read_it(jobs):
    train(jobs, 2, 15, 'runs', 'together')
    assert ctl('snapshot', 'verify', jobs.folder / 'runs').returncode == 0
    whole = float(train(jobs, 2, 30, 'whole', 'together').find(r'sum (\S+)')[1])
    job = train(jobs, 3, 30, 'runs', 'together')
    assert from_lines(job) == [(15, 'disk')] * 3
    assert float(job.find(r'sum (\S+)')[1]) == pytest.approx(whole, rel=1e-4)
    look = """
import sys, torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
dcp_to_torch_save(sys.argv[1], 'all.pt')
state = torch.load('all.pt', weights_only=False)
assert state['model']['0.weight'].shape == (301, 20)
assert state['optimizer']['state']['0.weight']['exp_avg'].shape == (301, 20)
print(f"sum {sum(part.abs().sum().item() for part in state['model'].values()):.6f}")
"""
    code, output = jobs.run(PYTHON, '-c', look, jobs.folder / 'runs' / 'step-30')
    assert code == 0, output
    assert job.find(r'sum (\S+)')[0] in output


def to_safetensors(jobs, snapshot):
    env = {'PYTHONPATH': str(ROOT / 'worker_sdk' / 'python')}
    command = ('-m', 'cpprun_worker.to_safetensors', snapshot, 'model.safetensors')
    return jobs.run(PYTHON, *command, env=env)


def test_its_model_becomes_a_safetensors_file(jobs):
    train(jobs, 2, 5, 'runs')
    assert to_safetensors(jobs, 'runs/step-5') == (0, '')
    look = """
import safetensors.torch, torch
from torch.distributed.checkpoint.format_utils import dcp_to_torch_save
dcp_to_torch_save('runs/step-5', 'all.pt')
model = torch.load('all.pt', weights_only=False)['model']
exported = safetensors.torch.load_file('model.safetensors')
assert exported.keys() == model.keys()
for name, tensor in exported.items():
    assert tensor.dtype == model[name].dtype and torch.equal(tensor, model[name]), name
"""
    code, output = jobs.run(PYTHON, '-c', look)
    assert code == 0, output
    refused = ctl('snapshot', 'convert', jobs.folder / 'runs/step-5', jobs.folder / 'all.pt')
    assert refused.returncode == 1
    assert 'is sharded; ' in refused.stderr and 'cpprun_worker.to_safetensors' in refused.stderr
    (part,) = (jobs.folder / 'runs' / 'step-5').glob('__1_0.distcp')
    part.write_bytes(bytes(part.stat().st_size))
    (jobs.folder / 'model.safetensors').unlink()
    code, output = to_safetensors(jobs, 'runs/step-5')
    assert code == 1 and "error: runs/step-5/__1_0.distcp is not what was written" in output
    part.unlink()
    code, output = to_safetensors(jobs, 'runs/step-5')
    assert code == 1 and output.startswith('error: '), output
    assert not list(jobs.folder.glob('model.safetensors*'))


def test_a_model_of_another_shape_is_refused_with_its_tensor(jobs):
    train(jobs, 2, 5, 'runs')
    job = start(jobs, 2, 10, 'runs', restarts=0, WIDTH='310')
    assert job.done() == 1
    message = 'runs/step-5 does not fit the program: the sharded model: rank 0: Size mismatch'
    assert message in job.output, job.output
    assert ' for model.0.weight' in job.output


@long
def test_an_own_object_with_the_state_dict(jobs):
    whole = result(train(jobs, 2, 20, 'a', 'apart'))
    assert result(train(jobs, 2, 20, 'b', 'whole', 'kill:rank=0,step=12,attempt=0')) == whole
