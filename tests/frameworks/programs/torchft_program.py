"""torchft: this job is one replica group of one rank. Groups meet at a lighthouse; one that is
restarted gets the state of the others, and needs no checkpoint."""

import os

import torch
from common import STEPS, end, fail_if_wanted, make_model, resumed_at
from torch.nn.functional import cross_entropy
from torchft import DistributedDataParallel, Manager, Optimizer, ProcessGroupGloo

GROUP = int(os.environ['REPLICA_GROUP_ID'])


def batch_of_group(step):
    own = torch.Generator().manual_seed(step * 2 + GROUP)
    return torch.randn(4, 20, generator=own), torch.randint(7, (4,), generator=own)


def main():
    net = make_model()
    optimizer = torch.optim.AdamW(net.parameters(), 1e-2)

    def state():
        return {'model': net.state_dict(), 'optimizer': optimizer.state_dict()}

    def load(state):
        net.load_state_dict(state['model'])
        optimizer.load_state_dict(state['optimizer'])

    # Both groups take part in each step: the run waits for the one that is restarted.
    manager = Manager(pg=ProcessGroupGloo(), state_dict=state, load_state_dict=load,
                      min_replica_size=2, replica_id=f'group{GROUP}_', use_async_quorum=False,
                      hostname='127.0.0.1')
    model = DistributedDataParallel(manager, net)
    wrapped = Optimizer(manager, optimizer)
    is_first = True
    while manager.current_step() < STEPS:
        wrapped.zero_grad()  # the quorum; a new group gets the state here
        step = manager.current_step()
        if is_first:
            resumed_at(step)
            is_first = False
        if os.environ['FAIL_GROUP'] == str(GROUP):
            fail_if_wanted(step)
        inputs, labels = batch_of_group(step)
        cross_entropy(model(inputs), labels).backward()
        wrapped.step()
    manager.shutdown(wait=False)
    end(net.parameters(), manager.current_step())


main()
