"""A small training for tests of cpprun_worker.Snapshot: DistributedDataParallel with several
buckets, dropout, and numbers from all generators. Any state that is lost changes the parameters.

    python_snapshot_worker.py [steps=N] [every=N|30s|auto] [disk_every=N|30s] [sleep=SECONDS]
                              [width=N] [NAME=VALUE...]

With device=cuda the model is on the GPU, over the backend=nccl or gloo (default).
With flags=waits each save is on disk before the next step: otherwise one is left out while the one
before is still being written. With hold=N it waits after step N and its saves for a file `go`.

Prints "[rank R] from STEP SOURCE", a line per step of rank 0, and "[rank R] parameters HASH".
"""

import datetime
import os
import pathlib
import random
import sys
import time

import numpy
import torch
import torch.distributed as dist
from hashes import hash_of
from worker_end import leave_group_and_end
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker

WORDS = dict(word.split('=', 1) for word in sys.argv[1:])
EVERY = ('every', '5'), ('disk_every', None)
DEVICE = WORDS.get('device', 'cpu')
RANK, WORLD = int(os.environ.get('RANK', 0)), int(os.environ.get('WORLD_SIZE', 1))


class Net(nn.Module):
    """Registers its layers in another order than it uses them: DDP reassigns its buckets."""

    def __init__(self, width):
        super().__init__()
        self.second = nn.Linear(width, 120)
        self.first = nn.Linear(20, width)
        self.norm = nn.BatchNorm1d(width)
        self.last = nn.Linear(120, 7)
        self.tied = self.last

    def forward(self, x):
        hidden = torch.relu(self.norm(self.first(x)))
        return self.last(nn.functional.dropout(torch.relu(self.second(hidden)), 0.1))


def report(text):
    print(f'[rank {RANK}] {text}', flush=True)


def make(settings):
    torch.manual_seed(0)
    model = Net(int(settings.get('width', 300))).to(DEVICE)
    if WORLD > 1:
        model = DistributedDataParallel(model, bucket_cap_mb=0.05)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 50)
    for seed in (torch.manual_seed, random.seed, numpy.random.seed):
        seed(100 + RANK)
    return model, optimizer, scheduler


def train(model, optimizer):
    x = torch.randn(16, 20) + random.random() + numpy.random.rand()
    optimizer.zero_grad()
    model(x.float().to(DEVICE)).pow(2).mean().backward()
    optimizer.step()


def make_snapshot(settings, model, optimizer, scheduler, extra, own):
    flags = settings.get('flags', '').split(',')
    if 'impatient' in flags:  # a file system that does not answer is given up in seconds
        from cpprun_worker._snapshot import files, ranks

        files.ANSWER_TAKES = 3
        ranks.SHARDS_TIMEOUT = datetime.timedelta(seconds=20)
    return cpprun_worker.Snapshot(
        settings.get('folder'),
        model=model,
        optimizer=optimizer,
        scheduler=scheduler,
        extra=extra,
        per_rank=own,
        keep=int(settings.get('keep', 3)),
        in_memory='no-memory' not in flags,
        refuse_nan='refuse-nan' in flags,
    )


def number_or_text(word):
    return int(word) if word and word.isdigit() else word


def hold(state):
    state.wait()
    report('holds')
    while not os.path.exists('go'):
        time.sleep(0.05)


def main(settings):
    if WORLD > 1:
        dist.init_process_group(settings.get('backend', 'gloo'))
    report(f'started as process {os.getpid()}')
    model, optimizer, scheduler = make(settings)
    extra, own = {'epoch': 0, 'seen': []}, {'mine': torch.tensor([RANK])}
    state = make_snapshot(settings, model, optimizer, scheduler, extra, own)
    step = state.resume()
    report(f'from {step} {state.source}')
    assert extra['seen'] == list(range(1, step + 1)), extra
    is_whole = own['mine'].tolist() == ([RANK] if not step else [RANK, step])
    assert is_whole or 'lacks-own' in settings.get('flags', ''), own
    every, disk_every = (number_or_text(settings.get(*word)) for word in EVERY)
    while step < int(settings.get('steps', 30)):
        cpprun_worker.fault_point(step=step)
        train(model, optimizer)
        scheduler.step()
        step += 1
        extra['seen'].append(step)
        extra['epoch'] = step // 10
        own['mine'] = torch.tensor([RANK, step])
        if step == int(settings.get('nan', -1)):
            optimizer.param_groups[0]['params'][0].data[0] = float('nan')
        if RANK == 0:
            report(f'step {step}')
        time.sleep(float(settings.get('sleep', 0)))
        cpprun_worker.heartbeat(step)
        state.maybe_save(step, every, disk_every)
        if 'waits' in settings.get('flags', ''):
            state.wait()
        if step == int(settings.get('hold', -1)):
            hold(state)
    is_well = state.wait()
    report(f'saved {is_well} {state.last_path}')
    report(f'parameters {hash_of(model.parameters())}')
    if RANK == 0:  # DistributedDataParallel takes the buffers of rank 0
        report(f'state {hash_of(model.state_dict().values())}')
    leave_group_and_end()


if __name__ == '__main__':
    main(WORDS)
