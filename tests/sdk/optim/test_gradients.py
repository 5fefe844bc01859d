"""Clipped and scaled gradients and fused steps equal Python's in every bit."""

import json
import random

import pytest


def parameter(numbers, dtypes):
    shape = [numbers.randint(1, 40) for _ in range(numbers.randint(0, 3))]
    return {
        'shape': shape,
        'dtype': numbers.choice(dtypes),
        'size': 10 ** numbers.uniform(-3, 3),
        'has_grad': numbers.random() < 0.9,
    }


def clip_settings():
    numbers = random.Random(6)
    for seed in range(600):
        dtypes = ['float32'] if seed % 2 else ['float32', 'float64', 'bfloat16']
        yield {
            'seed': seed,
            'parameters': [parameter(numbers, dtypes) for _ in range(numbers.randint(0, 12))],
            'norm_type': numbers.choice(['1', '2', '2', '2', '3', 'inf']),
            'max_norm': 10 ** numbers.uniform(-2, 4),
            'clip_value': 10 ** numbers.uniform(-4, 1),
        }


def scaler_settings():
    numbers = random.Random(7)
    for at in range(24):
        yield {
            'init_scale': numbers.choice([65536.0, 1.0, 3.7]),
            'growth_factor': numbers.choice([2.0, 1.3]),
            'backoff_factor': numbers.choice([0.5, 0.7]),
            'growth_interval': numbers.choice([1, 3, 2000]),
            'steps': numbers.choices(['good', 'inf', 'nan'], [8, 1, 1], k=40),
            'clips': at % 2 == 1,
        }


def fused_settings():
    numbers = random.Random(8)
    for seed in range(120):
        optimizer = ['SGD', 'Adam', 'AdamW'][seed % 3]
        dtypes = ['float32'] if seed % 2 else ['float32', 'float64']
        shapes = [parameter(numbers, dtypes) | {'has_grad': False} for _ in range(6)]
        momentum = numbers.choice([0, 0.9])
        nesterov = momentum > 0 and numbers.random() < 0.5
        yield {
            'seed': seed,
            'optimizer': optimizer,
            'fused': True,
            'parameters': shapes,
            'steps': 20,
            # Python's fused SGD requires all parameters to start together.
            'is_late': optimizer != 'SGD' and numbers.random() < 0.5,
            'lr': 10 ** numbers.uniform(-4, -1),
            'weight_decay': numbers.choice([0, 0.01]),
            'momentum': momentum,
            'dampening': 0 if nesterov else numbers.choice([0, 0.1]),
            'nesterov': nesterov,
            'betas': [numbers.choice([0.9, 0.5]), 0.999],
            'eps': numbers.choice([1e-8, 1e-4]),
            'amsgrad': numbers.random() < 0.5,
        }


SETTINGS = {'clip': clip_settings, 'scaler': scaler_settings, 'fused': fused_settings}


@pytest.mark.parametrize('name', ['clip', 'scaler', 'fused'])
def test_bits_equal_pythons(ranks, name):
    settings = list(SETTINGS[name]())
    path = ranks.folder / 'settings.jsonl'
    path.write_text(''.join(json.dumps(setting) + '\n' for setting in settings))
    ours = ranks.lone_case('optim', name, path, seconds=240).well().out.splitlines()
    pythons = ranks.lone_twin('gradients.py', name, path, seconds=240).well().out.splitlines()
    assert len(ours) == len(pythons) >= len(settings)
    for at, (a, b) in enumerate(zip(ours, pythons)):
        assert a == b, f'line {at}'


def sums(lines):
    return [[float(word) for word in line.split()[::2]] for line in lines]


def test_fused_steps_differ_from_plain_ones_by_rounding(ranks):
    # Also with a parameter of SGD that starts later, which Python's fused SGD rejects.
    settings = [setting | {'is_late': True} for setting in fused_settings()]
    found = []
    for is_fused in (True, False):
        path = ranks.folder / f'{is_fused}.jsonl'
        lines = (json.dumps(setting | {'fused': is_fused}) + '\n' for setting in settings)
        path.write_text(''.join(lines))
        found.append(ranks.lone_case('optim', 'fused', path, seconds=240).well().out.splitlines())
    for fused, plain in zip(*map(sums, found)):
        assert fused == pytest.approx(plain, rel=1e-3)
    assert found[0] != found[1]


def test_infinity_on_one_rank_counts_on_all_ranks(ranks):
    job = ranks.case('optim', 3, 'scaler_sync', 'sync').well()
    good = [f'rank {rank} stepped 1 scale 8' for rank in range(3)]
    left_out = [f'rank {rank} stepped 0 scale 4' for rank in range(3)]
    assert job.lines('rank') == sorted(good + left_out)


def test_ranks_diverge_without_sync(ranks):
    job = ranks.case('optim', 2, 'scaler_sync', 'alone').well()
    assert job.lines('rank 0')[-1:] == ['rank 0 stepped 1 scale 8']
    assert 'rank 1 stepped 0 scale 4' in job.lines('rank 1')
