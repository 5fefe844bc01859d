"""Trains a small transformer with DDP over Gloo on random tokens, without end.

Each step depends on its number alone, so a training that resumes continues as if it had not been
interrupted. Rank 0 appends the number of each finished step and its time to --progress.

    train.py --progress FILE --folder SNAPSHOTS [--every N|auto] [--disk-only] [--elastic]
"""

import argparse
import os
import pathlib
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk' / 'python'))
import cpprun_worker  # noqa: E402

WORDS, LENGTH, WIDTH, BATCH = 64, 32, 64, 4


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 2 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, tokens):
        return self.head(self.layers(self.embedding(tokens)))


def make():
    torch.manual_seed(0)
    net = Net()
    return net, torch.optim.AdamW(net.parameters(), lr=1e-3)


def train_one_step(model, optimizer, step, rank):
    generator = torch.Generator().manual_seed(1000 * step + rank)
    tokens = torch.randint(WORDS, (BATCH, LENGTH + 1), generator=generator)
    optimizer.zero_grad()
    found = model(tokens[:, :-1])
    nn.functional.cross_entropy(found.reshape(-1, WORDS), tokens[:, 1:].reshape(-1)).backward()
    optimizer.step()


class Progress:
    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def done(self, step, rank):
        if rank == 0:
            os.write(self._file, f'{step} {time.monotonic_ns()}\n'.encode())


def snapshot_of(options, model, optimizer):
    in_memory = not options.disk_only
    return cpprun_worker.Snapshot(
        options.folder, model=model, optimizer=optimizer, in_memory=in_memory, keep=2
    )


def train(options):
    """As any script of torchrun: all workers begin anew after a failure."""
    dist.init_process_group('gloo')
    rank, progress = dist.get_rank(), Progress(options.progress)
    net, optimizer = make()
    model = DistributedDataParallel(net)
    state = snapshot_of(options, model, optimizer)
    step = state.resume()
    while True:
        train_one_step(model, optimizer, step, rank)
        step += 1
        cpprun_worker.heartbeat(step)
        progress.done(step, rank)
        state.maybe_save(step, options.every)


def train_elastic(options):
    """Workers that have not failed keep their processes, and the steps that they have done."""
    net, optimizer = make()
    progress = Progress(options.progress)

    @cpprun_worker.elastic
    def run(this):
        this.init_process_group('gloo')
        step = this.share_state(model=net, optimizer=optimizer)
        model = this.data_parallel(net)
        state = snapshot_of(options, model, optimizer)
        if step == 0:  # no worker has survived
            step = state.resume()
        while True:
            train_one_step(model, optimizer, step, this.rank)
            step += 1
            this.commit(step)
            progress.done(step, this.rank)
            state.maybe_save(step, options.every)

    run()


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--progress', required=True)
    parser.add_argument('--folder', required=True)
    parser.add_argument('--every', default='50', help='steps between saves, or "auto"')
    parser.add_argument('--disk-only', action='store_true', help='no snapshots in memory')
    parser.add_argument('--elastic', action='store_true')
    options = parser.parse_args()
    if options.every.isdigit():
        options.every = int(options.every)
    return options


if __name__ == '__main__':
    given = parse()
    (train_elastic if given.elastic else train)(given)
