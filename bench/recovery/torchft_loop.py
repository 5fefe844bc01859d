"""bare_loop.py with torchft: this process is a replica group of one rank, and gets the state of the
others after a restart. torchft_run.py starts it. Stamps: step-N, for the first step of the process
and for one that took long, because another group had failed."""

import os
import time

import torch
from stamps import stamp
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

LONG = 0.2  # seconds; a step takes 20 ms
GROUP, GROUPS = int(os.environ['REPLICA_GROUP_ID']), int(os.environ['REPLICA_GROUPS'])

torch.manual_seed(0)
net = torch.nn.Linear(16, 1)
plain = torch.optim.SGD(net.parameters(), lr=0.01)


def state():
    return {'model': net.state_dict(), 'optimizer': plain.state_dict()}


def load(state):
    net.load_state_dict(state['model'])
    plain.load_state_dict(state['optimizer'])


manager = Manager(
    pg=ProcessGroupGloo(),
    state_dict=state,
    load_state_dict=load,
    min_replica_size=GROUPS,  # as elsewhere in this suite, no step is made by fewer ranks
    replica_id=f'group{GROUP}_',
    use_async_quorum=False,
    hostname='127.0.0.1',
)
model = DistributedDataParallel(manager, net)
optimizer = Optimizer(manager, plain)
inputs = torch.ones(4, 16)
done_at = 0.0
while True:
    before = manager.current_step()
    optimizer.zero_grad()  # the quorum
    model(inputs).sum().backward()
    optimizer.step()
    step = manager.current_step()
    if step > before:  # not all failed steps raise
        if time.monotonic() - done_at > LONG:
            stamp(f'step-{step}', rank=GROUP)
        done_at = time.monotonic()
    time.sleep(0.01)  # so that training takes no CPU time from a recovery
