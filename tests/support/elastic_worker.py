"""A training for tests of cpprun_worker.elastic: DistributedDataParallel on Gloo, whose parameters
depend on every step.

    elastic_worker.py [steps=N] [sleep=SECONDS] [state=donor|memory] [fault=KIND:RANK]

fault: hang (never returns to Python), swallow (ignores every exception), raise (in its second
call), slow (leaves its round late), each of the rank of the first round.
Prints "[rank R] call N of process PID", "[rank R] from STEP", steps of rank 0, and
"[rank R] parameters HASH".
"""

import ctypes
import hashlib
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker

WORDS = dict(word.split('=', 1) for word in sys.argv[1:])
STEPS = int(WORDS.get('steps', 30))
FAULT, _, FAULTY = WORDS.get('fault', '').partition(':')
IS_FAULTY = FAULTY == os.environ['RANK'] and os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'

torch.manual_seed(0)
MODEL = nn.Sequential(nn.Linear(20, 60), nn.Tanh(), nn.Linear(60, 7))
OPTIMIZER = torch.optim.AdamW(MODEL.parameters(), 1e-2)


def say(text):
    print(f'[rank {os.environ["RANK"]}] {text}', flush=True)


def hash_of(model):
    content = b''.join(each.detach().numpy().tobytes() for each in model.parameters())
    return hashlib.sha256(content).hexdigest()[:16]


def batch(step, rank):
    """The data of a step, whatever process takes it."""
    return torch.randn(8, 20, generator=torch.Generator().manual_seed(1000 * step + rank))


def hang():
    """Inside C code that keeps Python's interpreter lock: no thread of this process runs on."""
    ctypes.PyDLL(None).sleep(3600)


def run_steps(round, model, step, snapshot):
    while step < STEPS:
        if IS_FAULTY and FAULT == 'hang' and step == 10:
            say('hangs')
            hang()
        OPTIMIZER.zero_grad()
        model(batch(step, round.rank)).pow(2).mean().backward()
        OPTIMIZER.step()
        step += 1
        round.commit(step)
        if round.rank == 0:
            say(f'step {step} of round {round.number}')
        if snapshot is not None:
            snapshot.maybe_save(step, every=5)
        time.sleep(float(WORDS.get('sleep', 0)))
    if snapshot is not None:
        snapshot.wait()


@cpprun_worker.elastic(min_world=2)
def train(round):
    say(f'call of process {os.getpid()} in round {round.number}')
    if IS_FAULTY and FAULT == 'raise' and not round.is_first:
        raise ValueError('the second call fails')
    round.init_process_group('gloo')
    snapshot = None
    if WORDS.get('state') == 'memory':
        model = DistributedDataParallel(MODEL)
        snapshot = cpprun_worker.Snapshot(model=model, optimizer=OPTIMIZER)
        step = snapshot.resume()
    else:
        step = round.share_state(model=MODEL, optimizer=OPTIMIZER)
        model = round.data_parallel(MODEL)
    say(f'from {step}')
    try:
        run_steps(round, model, step, snapshot)
    except RuntimeError:
        if IS_FAULTY and FAULT == 'swallow':
            say('swallows')
            while True:
                time.sleep(0.1)
        raise
    say(f'parameters {hash_of(MODEL)}')
    dist.destroy_process_group()


train()
