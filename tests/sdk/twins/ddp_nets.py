"""The nets and data of the DDP tests, as tests/sdk/nn/nets.hpp has them."""

import sys

import torch
import torch.nn.functional as F


class Mlp(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(12, 32)
        self.second = torch.nn.Linear(32, 24)
        self.third = torch.nn.Linear(24, 4)

    def forward(self, x):
        return self.third(torch.relu(self.second(torch.relu(self.first(x)))))


class Branches(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Linear(12, 16)
        self.left = torch.nn.Linear(16, 4)
        self.right = torch.nn.Linear(16, 4)
        self.never = torch.nn.Linear(16, 4)

    def forward(self, x, goes_left):
        inner = torch.relu(self.body(x))
        return self.left(inner) if goes_left else self.right(inner)


class Normed(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(12, 16)
        self.norm = torch.nn.BatchNorm1d(16)
        self.second = torch.nn.Linear(16, 4)

    def forward(self, x):
        return self.second(torch.relu(self.norm(self.first(x))))


class Batches:
    def __init__(self, rank, device='cpu'):
        self.device = device
        self.generator = torch.Generator()
        self.generator.manual_seed(1000 + rank)

    def next(self, size=8):
        x = torch.randn(size, 12, generator=self.generator)
        y = torch.randn(size, 4, generator=self.generator)
        return x.to(self.device), y.to(self.device)


def make_net(kind, rank, device='cpu'):
    torch.manual_seed(7)
    net = kind()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(float(rank))
    return net.to(device)


def make_sgd(net):
    return torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)


def hash_of(module):
    value = 14695981039346656037
    for tensor in [*module.parameters(), *module.buffers()]:
        for byte in tensor.detach().cpu().contiguous().numpy().tobytes():
            value = ((value ^ byte) * 1099511628211) & (2**64 - 1)
    return value


def print_line(line):
    sys.stdout.write(line + '\n')
    sys.stdout.flush()


def print_loss(mode, rank, step, loss):
    print_line(f'{mode} loss {rank} {step} {loss.item():.17g}')


def print_end(mode, rank, ddp):
    print_line(f'{mode} end {rank} {hash_of(ddp.module)}')


mse = F.mse_loss
