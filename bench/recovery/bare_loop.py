"""The smallest DDP program: a linear layer, steps without end. stamped.py starts it."""

import time

import torch
import torch.distributed as dist
from stamps import BACKEND, DEVICE, stamp
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group(BACKEND)
dist.all_reduce(torch.ones(1, device=DEVICE))
stamp('reduced')
model = DistributedDataParallel(torch.nn.Linear(16, 1).to(DEVICE))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
inputs = torch.ones(4, 16, device=DEVICE)
while True:
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
    time.sleep(0.01)  # so that training takes no CPU time from a recovery
