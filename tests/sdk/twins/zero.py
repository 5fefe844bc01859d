"""Python's counterpart of the case zero."""

import torch
import torch.distributed as dist
from ddp_nets import Batches, hash_of, mse, print_line
from torch.distributed.optim import ZeroRedundancyOptimizer


class Even(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(12):
            self.add_module(f'layer{i}', torch.nn.Linear(12, 12))
        self.last = torch.nn.Linear(12, 4)

    def forward(self, x):
        for i in range(12):
            x = x + torch.tanh(getattr(self, f'layer{i}')(x))
        return self.last(x)


def train(mode, kind, **options):
    torch.manual_seed(7)
    ddp = torch.nn.parallel.DistributedDataParallel(Even())
    parameters = list(ddp.parameters())
    groups = [{'params': parameters[:2], 'lr': 0.02}, {'params': parameters[2:]}]
    options['fused'] = True
    if mode.startswith('zero'):
        optimizer = ZeroRedundancyOptimizer(groups, kind, **options)
        local = optimizer.optim
    else:
        local = optimizer = kind(groups, **options)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    batches = Batches(dist.get_rank())
    for step in range(20):
        x, y = batches.next()
        ddp.zero_grad()
        loss = mse(ddp(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        print_line(f'{mode} loss {dist.get_rank()} {step} {loss.item():.17g}')
    elements = sum(parameter.numel() for parameter in local.state)
    print_line(f'{mode} elements {dist.get_rank()} {elements}')
    print_line(f'{mode} end {dist.get_rank()} {hash_of(ddp.module)}')


dist.init_process_group('gloo')
for start in ('plain', 'zero'):
    train(f'{start}-sgd', torch.optim.SGD, lr=0.05, momentum=0.9)
    train(f'{start}-adamw', torch.optim.AdamW, lr=0.003)
dist.destroy_process_group()
