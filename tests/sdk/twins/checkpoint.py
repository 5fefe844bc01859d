"""Python's counterpart of the case checkpoint."""

import torch
import torch.distributed as dist
from ddp_nets import Batches, hash_of, mse, print_line
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

computations = 0


class DropBlock(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = torch.nn.Linear(width, width)
        self.drop = torch.nn.Dropout(0.4)

    def forward(self, x):
        global computations
        computations += 1
        return x + self.drop(torch.tanh(self.inner(x)))


class Deep(torch.nn.Module):
    def __init__(self, checkpoints):
        super().__init__()
        self.checkpoints = checkpoints
        for i in range(3):
            self.add_module(f'block{i}', DropBlock(12))
        self.last = torch.nn.Linear(12, 4)

    def forward(self, x):
        for block in (self.block0, self.block1, self.block2):
            # Python's reentrant form needs an input with a gradient; the SDK's does not.
            reentrant = x.requires_grad
            x = checkpoint(block, x, use_reentrant=reentrant) if self.checkpoints else block(x)
        return self.last(x)


class Row(torch.nn.Module):
    def __init__(self, segments):
        super().__init__()
        self.segments = segments
        self.blocks = torch.nn.Sequential(*(DropBlock(12) for _ in range(5)))
        self.last = torch.nn.Linear(12, 4)

    def forward(self, x):
        if not self.segments:
            return self.last(self.blocks(x))
        inner = checkpoint_sequential(self.blocks, self.segments, x, use_reentrant=False)
        return self.last(inner)


def train(start, net, casts=False):
    global computations
    ddp = torch.nn.parallel.DistributedDataParallel(net)
    torch.manual_seed(20 + dist.get_rank())
    sgd = torch.optim.SGD(ddp.parameters(), lr=0.05, momentum=0.9)
    batches = Batches(dist.get_rank())
    computations = 0
    for step in range(5):
        x, y = batches.next()
        ddp.zero_grad()
        with torch.autocast('cpu', enabled=casts):
            loss = mse(ddp(x), y)
        loss.backward()
        sgd.step()
        print_line(f'{start}loss {dist.get_rank()} {step} {loss.item():.17g}')
    print_line(f'{start}computations {dist.get_rank()} {computations}')
    print_line(f'{start}end {dist.get_rank()} {hash_of(ddp.module)}')


def train_deep(start, checkpoints, casts):
    torch.manual_seed(7)
    train(start, Deep(checkpoints), casts)


def train_row(segments):
    torch.manual_seed(8)
    train(f'row {segments} ', Row(segments))


dist.init_process_group('gloo')
train_deep('plain ', False, False)
train_deep('checkpoint ', True, False)
train_deep('checkpoint cast ', True, True)
for number in (0, 1, 2, 5):
    train_row(number)
dist.destroy_process_group()
