"""Python's counterpart of the case schedules: the same lines, from torch's own schedulers."""

import json
import sys
import warnings

import torch
from torch.optim import lr_scheduler

warnings.simplefilter('ignore')


def make_schedule(optimizer, setting):
    setting = dict(setting)
    kind = setting.pop('kind')
    if kind == 'SequentialLR':
        parts = [make_schedule(optimizer, part) for part in setting['schedulers']]
        return lr_scheduler.SequentialLR(optimizer, parts, setting['milestones'])
    if kind == 'ChainedScheduler':
        parts = [make_schedule(optimizer, part) for part in setting['schedulers']]
        return lr_scheduler.ChainedScheduler(parts, optimizer)
    if kind == 'LambdaLR':
        functions = [lambda step, decay=decay: decay**step for decay in setting['decays']]
        return lr_scheduler.LambdaLR(optimizer, functions[0] if len(functions) == 1 else functions)
    if kind == 'MultiplicativeLR':
        functions = [lambda step, decay=decay: decay for decay in setting['decays']]
        functions = functions[0] if len(functions) == 1 else functions
        return lr_scheduler.MultiplicativeLR(optimizer, functions)
    return getattr(lr_scheduler, kind)(optimizer, **setting)


def make_optimizer(setting):
    groups = [{'params': [torch.zeros(1, requires_grad=True)], 'lr': lr} for lr in setting['lrs']]
    kinds = {'adam': torch.optim.Adam, 'sgd': torch.optim.SGD}
    return kinds[setting['optimizer']](groups, lr=0.5)


def line(optimizer, schedule):
    numbers = []
    for group in optimizer.param_groups:
        numbers += [group['lr'], group['betas'][0] if 'betas' in group else group['momentum']]
    numbers += schedule.get_last_lr()
    return ''.join(f'{number:.17g} ' for number in numbers)


def step(optimizer, schedule, setting, at):
    if setting.get('halve_at', -1) == at:
        for group in optimizer.param_groups:
            group['lr'] *= 0.5
    if isinstance(schedule, lr_scheduler.ReduceLROnPlateau):
        schedule.step(setting['metrics'][at])
    elif 'places' in setting:
        schedule.step(setting['places'][at])
    else:
        schedule.step()


def main(path):
    with open(path, encoding='ascii') as file:
        for text in file:
            setting = json.loads(text)
            optimizer = make_optimizer(setting)
            schedule = make_schedule(optimizer, setting['schedule'])
            print(line(optimizer, schedule))
            for at in range(setting['steps']):
                step(optimizer, schedule, setting, at)
                print(line(optimizer, schedule))


main(sys.argv[1])
