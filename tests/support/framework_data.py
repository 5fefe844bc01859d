"""What the workers of the framework adapters have in common: a small model and its data. EPOCHS of
10 steps each; EVERY and DISK_EVERY as in maybe_save(), in steps.
"""

import os
import pathlib
import sys
import time

import torch
from hashes import hash_of
from worker_end import end_worker
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker

RANK = int(os.environ.get('RANK', 0))
EPOCHS = int(os.environ.get('EPOCHS', 3))
DISK_EVERY = int(os.environ['DISK_EVERY']) if 'DISK_EVERY' in os.environ else None


class Numbers(torch.utils.data.Dataset):
    """With noise it draws from the generator of its process, as augmentation does."""

    def __init__(self, size, noise=0.0):
        self.size, self.noise = size, noise

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        own = torch.Generator().manual_seed(index)
        numbers = torch.randn(20, generator=own)
        numbers = numbers + self.noise * torch.randn(20) if self.noise else numbers
        return numbers, torch.tensor(index % 7)


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(20, 64), nn.ReLU(), nn.BatchNorm1d(64), nn.Dropout(0.2), nn.Linear(64, 7)
    )


def every(default):
    return int(os.environ.get('EVERY', default))


def report(text):
    print(f'[rank {RANK}] {text}', flush=True)


def before_step(step):
    """`step`: the number of finished ones. Leaves the last save time to be written."""
    if RANK == 0:
        report(f'step {step}')
    cpprun_worker.fault_point(step=step)
    time.sleep(0.05)


def end(model):
    report(f'parameters {hash_of(model.parameters())}')
    torch.distributed.barrier()
    end_worker()
