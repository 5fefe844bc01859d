"""Python's counterpart of examples/cpp/ex_contrastive.cpp: contrastive.py STEPS"""

import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from ddp_nets import hash_of, print_line
from torch.distributed.nn import functional


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(12, 32)
        self.last = torch.nn.Linear(32, 8)

    def forward(self, x):
        return F.normalize(self.last(torch.relu(self.first(x))), dim=1)


def contrastive_loss(ours, pairs):
    everything = torch.cat(functional.all_gather(pairs))
    first = dist.get_rank() * len(ours)
    labels = torch.arange(first, first + len(ours))
    return F.cross_entropy(torch.mm(ours, everything.t()) / 0.1, labels)


def main(steps):
    dist.init_process_group('gloo')
    rank = dist.get_rank()
    torch.manual_seed(0)
    ddp = torch.nn.parallel.DistributedDataParallel(Encoder())
    optimizer = torch.optim.SGD(ddp.parameters(), 0.1)
    random = torch.Generator().manual_seed(100 + rank)
    for step in range(steps):
        x = torch.randn(8, 12, generator=random)
        views = torch.cat([x, x + 0.1 * torch.randn(8, 12, generator=random)])
        optimizer.zero_grad()
        codes = ddp(views).split(8)
        loss = contrastive_loss(codes[0], codes[1])
        loss.backward()
        print_line(f'step {step} rank {rank} loss {loss.item():.6g}')
        optimizer.step()
    print_line(f'weights {rank} {hash_of(ddp.module):016x}')
    dist.destroy_process_group()


main(int(sys.argv[1]))
