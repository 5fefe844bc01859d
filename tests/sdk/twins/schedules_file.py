"""Python's counterpart of the case snapshot_schedules: saves schedulers after four steps of each,
and prints their next rates."""

import copy
import sys

import torch
from torch.optim import lr_scheduler as schedules

KINDS = {
    'multi': lambda optimizer: schedules.MultiStepLR(optimizer, [2, 6, 6, 9], 0.5),
    'lambda': lambda optimizer: schedules.LambdaLR(optimizer, lambda step: 0.9**step),
    'cycle': lambda optimizer: schedules.OneCycleLR(optimizer, 0.3, total_steps=20),
    'sequence': lambda optimizer: schedules.SequentialLR(
        optimizer,
        [
            schedules.LinearLR(optimizer, 0.1, total_iters=6),
            schedules.ExponentialLR(optimizer, 0.8),
        ],
        [6],
    ),
}


def rates(optimizer, schedule, steps):
    for _ in range(steps):
        optimizer.step()
        schedule.step()
        yield f'{schedule.get_last_lr()[0]:.9g}'


def main(path):
    snapshot = {}
    for name, make in KINDS.items():
        optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], 0.1, momentum=0.9)
        schedule = make(optimizer)
        list(rates(optimizer, schedule, 4))
        snapshot[f'{name.upper()}_STATE'] = copy.deepcopy(schedule.state_dict())
        snapshot[f'{name.upper()}_OPTIMIZER_STATE'] = copy.deepcopy(optimizer.state_dict())
        print(name, *rates(optimizer, schedule, 10))
    torch.save(snapshot, path)


main(sys.argv[1])
