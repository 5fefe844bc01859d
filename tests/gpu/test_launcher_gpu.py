"""What the launcher does with GPUs: it counts them, its workers use them after a fork and after a
restart, its checks ask the driver, and it reads NCCL's flight recorder."""

import re
import subprocess

import pytest
from conftest import GPUS, needs_nccl
from launches import BIN, ROOT

USES_GPU = """
import os, signal, sys, time
import torch
rank, attempt = os.environ['RANK'], int(os.environ['TORCHELASTIC_RESTART_COUNT'])
x = torch.randn(512, 512, device='cuda')
print(f'[rank {rank}] sum', float((x @ x.inverse()).trace().round()), flush=True)
"""


@pytest.mark.parametrize('wanted', ['gpu', 'auto'])
def test_a_worker_for_each_gpu(jobs, wanted):
    script = jobs.script('import os; print("rank", os.environ["RANK"])')
    job = jobs.train(script, n=wanted)
    assert job.done() == 0, job.output
    assert len(re.findall(r'rank \d+$', job.output, re.MULTILINE)) == GPUS, job.output


@pytest.mark.parametrize('preload', ['off', 'torch'])
def test_gpu_is_opened_by_the_script(jobs, preload):
    """A forked worker makes its own CUDA context; the process that forks it has none."""
    script = jobs.script(USES_GPU + """
if attempt < 2 and rank == '1': os.kill(os.getpid(), signal.SIGKILL)
""")
    job = jobs.train(script, flags=(f'--preload={preload}',))
    assert job.done(200) == 0, job.output
    assert len(re.findall(r'sum 512\.0', job.output)) >= 5, job.output
    assert jobs.were_forked() == {preload != 'off'}


def test_worker_is_killed_while_its_gpu_computes(jobs):
    """Its memory on the GPU is free again: each of the workers takes more than a third of it."""
    script = jobs.script("""
import os, signal, time, torch
attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
free, total = torch.cuda.mem_get_info()
held = torch.empty(int(total * 0.4), dtype=torch.uint8, device='cuda')
x = torch.randn(4096, 4096, device='cuda')
for _ in range(2000): x = torch.tanh(x @ x)
print('queued', flush=True)
if attempt < 4: os.kill(os.getpid(), signal.SIGKILL)
torch.cuda.synchronize()
print('well', flush=True)
""")
    job = jobs.train(script, n=1)
    assert job.done(300) == 0, job.output
    assert job.output.count('queued') == 5 and job.output.count('well') == 1, job.output


def test_shipped_check_asks_the_driver():
    check = ROOT / 'packaging' / 'checks' / 'cpprun-check-gpus'
    done = subprocess.run([check, f'--count={GPUS}'], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith('ok'), done.stdout
    done = subprocess.run([check, '--count=99'], capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (1, f'{GPUS} GPUs answer, not 99\n')


def test_node_check_before_a_round(jobs):
    check = ROOT / 'packaging' / 'checks' / 'cpprun-check-gpus'
    job = jobs.train(jobs.script('print("well")'), flags=(f'--node-check={check} --count={GPUS}',))
    assert job.done() == 0, job.output


def test_doctor_counts_the_gpus(jobs):
    _, output = jobs.run(BIN / 'cpprunctl', 'doctor', '-v')
    assert re.search(rf'gpus +{GPUS} GPU', output), output


def test_flight_recorder_of_nccl(jobs):
    """A rank that misses a collective is named."""
    needs_nccl(3)
    script = jobs.script(f"""
import sys, time
sys.path.insert(0, {str(ROOT / 'worker_sdk' / 'python')!r})
import torch, torch.distributed as dist
import cpprun_worker
dist.init_process_group('nccl')
ones = torch.ones(3, device='cuda')
dist.all_reduce(ones)
torch.cuda.synchronize()
cpprun_worker.heartbeat(1)
if dist.get_rank() == 1: time.sleep(600)
dist.all_reduce(ones)
torch.cuda.synchronize()
""")
    job = jobs.train(script, n=3, flags=('--hang-timeout=10', '--max-restarts=0'))
    assert job.done(200) == 1, job.output
    output = ' '.join(job.output.split())
    assert "torch's flight recorder: rank 1 has not come to collective 2, nccl:all_reduce" in output
    assert 'in which ranks 0, 2 wait' in output, job.output


def test_training_of_two_nccl_ranks_restarts(jobs):
    needs_nccl(2)
    script = jobs.script("""
import os, signal, torch, torch.distributed as dist
dist.init_process_group('nccl')
attempt = int(os.environ['TORCHELASTIC_RESTART_COUNT'])
for step in range(50):
    if step == 20 and attempt < 3 and dist.get_rank() == attempt % 2:
        os.kill(os.getpid(), signal.SIGKILL)
    x = torch.ones(1 << 20, device='cuda')
    dist.all_reduce(x)
    assert x.sum().item() == 2 << 20
print('well', flush=True)
dist.destroy_process_group()
""")
    job = jobs.train(script)
    assert job.done(300) == 0, job.output
    assert job.output.count('well') == 2
