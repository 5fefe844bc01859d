"""Python's counterpart of the cases clip, scaler and fused: the same lines."""

import json
import math
import sys

import torch

BITS = {8: torch.int64, 4: torch.int32, 2: torch.int16}


def digest(tensor):
    bits = tensor.detach().contiguous().view(BITS[tensor.element_size()]).to(torch.int64)
    places = torch.arange(bits.numel(), dtype=torch.int64)
    return ((bits.flatten() + 1) * (places * 2_654_435_761 + 1)).sum().item()


def make_parameters(setting):
    torch.manual_seed(setting['seed'])
    parameters = []
    for one in setting['parameters']:
        parameter = torch.zeros(one['shape'], dtype=getattr(torch, one['dtype']))
        noise = torch.randn(one['shape']) * one['size']
        if one['has_grad']:
            parameter.grad = noise.to(parameter.dtype)
        parameters.append(parameter)
    return parameters


def clip(setting):
    parameters = make_parameters(setting)
    norm = torch.nn.utils.clip_grad_norm_(
        parameters, setting['max_norm'], float(setting['norm_type'])
    )
    words = [f'{norm.item():.17g}', digest(norm)]
    if any(parameter.grad is not None for parameter in parameters):
        torch.nn.utils.clip_grad_value_(parameters, setting['clip_value'])
    words += [digest(one.grad) for one in parameters if one.grad is not None]
    print(*words)


def scaler(setting):
    torch.manual_seed(1)
    weights = torch.randn(7, 3).requires_grad_()
    sgd = torch.optim.SGD([weights], 0.1, momentum=0.9)
    names = ('init_scale', 'growth_factor', 'backoff_factor', 'growth_interval')
    grad_scaler = torch.amp.GradScaler('cpu', **{name: setting[name] for name in names})
    for kind in setting['steps']:
        sgd.zero_grad()
        values = torch.randn(5, 7)
        if kind != 'good':
            values[0][0] = {'inf': math.inf, 'nan': math.nan}[kind]
        loss = torch.tanh(torch.mm(values, weights)).pow(2).sum()
        loss = loss + (0 if kind == 'good' else 1) * torch.mm(values, weights).sum()
        grad_scaler.scale(loss).backward()
        if setting['clips']:
            grad_scaler.unscale_(sgd)
            torch.nn.utils.clip_grad_norm_([weights], 0.5)
        grad_scaler.step(sgd)
        grad_scaler.update()
        tracker = grad_scaler.state_dict()['_growth_tracker']
        print(f'{grad_scaler.get_scale():.17g} {tracker:g} {digest(weights)}')


def make_optimizer(setting, parameters):
    words = {'lr': setting['lr'], 'weight_decay': setting['weight_decay'], 'fused': True}
    if setting['optimizer'] == 'SGD':
        names = ('momentum', 'dampening', 'nesterov')
    else:
        names = ('betas', 'eps', 'amsgrad')
    words |= {name: setting[name] for name in names}
    return getattr(torch.optim, setting['optimizer'])(parameters, **words)


def fused(setting):
    parameters = make_parameters(setting)
    optimizer = make_optimizer(setting, parameters)
    for step in range(setting['steps']):
        for at, parameter in enumerate(parameters):
            waits = setting['is_late'] and at < 2 and step < 3
            gradient = torch.randn(parameter.shape).to(parameter.dtype)
            if not waits:
                parameter.grad = gradient
        optimizer.step()
    words = [f'{one.double().abs().sum().item():.17g} {digest(one)} ' for one in parameters]
    print(''.join(words))


def main(name, path):
    with open(path, encoding='ascii') as file:
        for text in file:
            {'clip': clip, 'scaler': scaler, 'fused': fused}[name](json.loads(text))


main(*sys.argv[1:])
