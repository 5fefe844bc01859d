"""The Python counterpart of ddp_bench.cpp: same nets, seeds, data and arguments."""

import json
import os
import resource
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.nn.parallel import DistributedDataParallel

BATCHES, BATCH_SIZE = 8, 32


def mlp(inputs, width, layers):
    stack = []
    for i in range(layers):
        stack += [nn.Linear(inputs if i == 0 else width, width), nn.ReLU()]
    return nn.Sequential(*stack, nn.Linear(width, 10))


class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(9216, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        x = torch.max_pool2d(torch.relu(self.conv2(x)), 2)
        return self.fc2(torch.relu(self.fc1(torch.flatten(x, 1))))


def make_model(name):
    """Returns the net and the shape of one sample."""
    if name == 'mlp':
        return mlp(1024, 2100, 5), (1024,)
    return (Conv(), (1, 28, 28)) if name == 'conv' else (mlp(32, 32, 12), (32,))


def make_batches(shape):
    torch.manual_seed(1000 + dist.get_rank())
    return [
        (torch.randn(BATCH_SIZE, *shape), torch.randint(10, (BATCH_SIZE,))) for _ in range(BATCHES)
    ]


def usage():
    now = resource.getrusage(resource.RUSAGE_SELF)
    return time.monotonic(), now.ru_utime + now.ru_stime, time.thread_time(), now.ru_minflt


def train(name, warmup, steps, is_fused):
    dist.init_process_group('gloo')
    torch.manual_seed(1)
    net, shape = make_model(name)
    batches = make_batches(shape)
    ddp = DistributedDataParallel(net)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.01, momentum=0.9, fused=is_fused)
    losses = []
    for step in range(warmup + steps):
        if step == warmup:
            before = usage()
        data, label = batches[step % BATCHES]
        optimizer.zero_grad()
        loss = F.cross_entropy(ddp(data), label)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    wall, cpu, training_cpu, faults = (end - start for end, start in zip(usage(), before))
    if dist.get_rank() == 0:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out = {
            'cpu_ms': cpu * 1000 / steps,
            'training_cpu_ms': training_cpu * 1000 / steps,
            'wall_ms': wall * 1000 / steps,
            'faults': faults / steps,
            'rss_mib': peak / 1024,
            'losses': [f'{loss.item():.17g}' for loss in losses],
        }
        print(json.dumps(out), flush=True)
    dist.destroy_process_group()


def start():
    dist.init_process_group('gloo')
    dist.all_reduce(torch.ones(1))
    print(json.dumps({'start_s': time.time() - float(os.environ['BENCH_EXEC_AT'])}), flush=True)
    dist.destroy_process_group()


if __name__ == '__main__':
    if sys.argv[1] == 'start':
        start()
    else:
        train(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), 'fused' in sys.argv[4:])
