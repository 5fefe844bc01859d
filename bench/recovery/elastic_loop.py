"""bare_loop.py with cpprun_worker.elastic: when a worker dies, the others keep their processes.
stamped.py starts it. Further stamps: first_step (of a round)."""

import time

import torch
from cpprun_worker import elastic
from stamps import BACKEND, DEVICE, stamp

net = torch.nn.Linear(16, 1).to(DEVICE)
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
model = elastic.data_parallel(net)
inputs = torch.ones(4, 16, device=DEVICE)
begun = None
for _ in elastic.steps(10**9, model=net, optimizer=optimizer, backend=BACKEND):
    round = elastic.current_round().number
    with elastic.commit():
        optimizer.zero_grad()
        model(inputs).sum().backward()
        optimizer.step()
        if begun != round:
            begun = round
            stamp('first_step')
        time.sleep(0.01)  # so that training takes no CPU time from a recovery
