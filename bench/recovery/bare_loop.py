"""The smallest DDP program: a linear layer, Gloo, steps without end. stamped.py starts it."""

import time

import torch
import torch.distributed as dist
from stamps import stamp
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group('gloo')
dist.all_reduce(torch.ones(1))
stamp('reduced')
model = DistributedDataParallel(torch.nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.ones(4, 16)
while True:
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
    time.sleep(0.01)  # so that training takes no CPU time from a recovery
