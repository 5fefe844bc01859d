"""A training in place for tests of elastic.steps(): DistributedDataParallel on Gloo, with
BatchNorm, a scheduler, and a sampler that draws on.

    elastic_steps_worker.py [steps=N] [sleep=SECONDS] [fault=KIND:RANK] [late=in|now] [hook=fp16]

fault, of that rank in the first round, at step 10: backward (SIGKILL inside of backward), updated
(SIGKILL after the optimizer's step, before the commit), block (leaves the block out).
late: a collective behind the optimizer's step: in the block, or behind its now().
hook: gradients are summed in half precision, by a communication hook.
With device=cuda the model is on the GPU, over the backend=nccl or gloo (default).
Prints "[rank R] call of process PID in round N" for each round, steps of rank 0, and
"[rank R] parameters HASH".
"""

import os
import pathlib
import signal
import sys
import time

import torch
import torch.distributed as dist
from hashes import hash_of
from worker_end import end_worker
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker
from cpprun_worker import elastic

WORDS = dict(word.split('=', 1) for word in sys.argv[1:])
STEPS = int(WORDS.get('steps', 30))
FAULT, _, FAULTY = WORDS.get('fault', '').partition(':')
IS_FAULTY = FAULTY == os.environ['RANK'] and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'
LATE = WORDS.get('late')
DEVICE, BACKEND = WORDS.get('device', 'cpu'), WORDS.get('backend', 'gloo')

torch.manual_seed(0)
MODEL = nn.Sequential(
    nn.Linear(20, 60), nn.BatchNorm1d(60), nn.Tanh(), nn.Dropout(0.0), nn.Linear(60, 7)
).to(DEVICE)
OPTIMIZER = torch.optim.AdamW(MODEL.parameters(), 1e-2)
SCHEDULER = torch.optim.lr_scheduler.StepLR(OPTIMIZER, 7, 0.5)


class Sampler:
    """The order of the data, which depends on all draws before."""

    def __init__(self):
        self.drawn = 1

    def draw(self):
        self.drawn = self.drawn * 6364136223846793005 % 2**31
        return self.drawn

    def state_dict(self):
        return {'drawn': self.drawn}

    def load_state_dict(self, state):
        self.drawn = state['drawn']


SAMPLER = Sampler()


def report(text):
    print(f'[rank {os.environ["RANK"]}] {text}', flush=True)


def inject(step, kind):
    if IS_FAULTY and kind == FAULT and step == 10:
        os.kill(os.getpid(), signal.SIGKILL)


def backward(loss, step):
    parameter = next(MODEL.parameters())  # whose gradient comes last
    hook = parameter.register_hook(lambda _: inject(step, 'backward'))
    loss.backward()
    hook.remove()


def train_one_step(ddp, step, rank, commit):
    OPTIMIZER.zero_grad()
    data = torch.Generator().manual_seed(SAMPLER.draw() + rank)
    loss = ddp(torch.randn(8, 20, generator=data).to(DEVICE)).pow(2).mean()
    backward(loss, step)
    OPTIMIZER.step()
    if LATE == 'in':
        dist.all_reduce(loss.detach())  # its end shows that all have updated their parameters
    if LATE != 'now':
        inject(step, 'updated')
    if LATE == 'in':
        dist.all_reduce(loss.detach())
    SCHEDULER.step()
    if LATE == 'now':
        commit.now()
        inject(step, 'updated')
        dist.all_reduce(loss.detach())


def train():
    ddp = elastic.data_parallel(MODEL)
    if WORDS.get('hook') == 'fp16':
        ddp.register_comm_hook(None, default_hooks.fp16_compress_hook)
    objects = {'model': MODEL, 'optimizer': OPTIMIZER, 'scheduler': SCHEDULER, 'sampler': SAMPLER}
    seen = None
    for step in elastic.steps(STEPS, backend=BACKEND, min_world=2, **objects):
        round = elastic.current_round()
        if seen != round.number:
            report(f'call of process {os.getpid()} in round {round.number}')
            report(f'from {step}')
            seen = round.number
        if IS_FAULTY and FAULT == 'block' and step == 10:
            continue
        with elastic.commit() as commit:
            train_one_step(ddp, step, round.rank, commit)
            time.sleep(float(WORDS.get('sleep', 0)))
            if round.rank == 0:
                report(f'step {step + 1} of round {round.number}')
    report(f'parameters {hash_of(MODEL.parameters())}')
    dist.destroy_process_group()


with cpprun_worker.section('training', limit=600):
    train()
end_worker()
