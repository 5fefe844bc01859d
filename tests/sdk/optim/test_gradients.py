"""Clipped and scaled gradients are Python's, in every bit."""

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


@pytest.mark.parametrize('name', ['clip', 'scaler'])
def test_bits_equal_pythons(ranks, name):
    settings = list({'clip': clip_settings, 'scaler': scaler_settings}[name]())
    path = ranks.folder / 'settings.jsonl'
    path.write_text(''.join(json.dumps(setting) + '\n' for setting in settings))
    ours = ranks.lone_case('optim', name, path, seconds=240).well().out.splitlines()
    pythons = ranks.lone_twin('gradients.py', name, path, seconds=240).well().out.splitlines()
    assert len(ours) == len(pythons) >= len(settings)
    for at, (a, b) in enumerate(zip(ours, pythons)):
        assert a == b, f'line {at}'


def test_an_infinity_of_one_rank_is_all_ranks(ranks):
    job = ranks.case('optim', 3, 'scaler_sync', 'sync').well()
    good = [f'rank {rank} stepped 1 scale 8' for rank in range(3)]
    left_out = [f'rank {rank} stepped 0 scale 4' for rank in range(3)]
    assert job.lines('rank') == sorted(good + left_out)


def test_without_sync_ranks_part(ranks):
    job = ranks.case('optim', 2, 'scaler_sync', 'alone').well()
    assert job.lines('rank 0')[-1:] == ['rank 0 stepped 1 scale 8']
    assert 'rank 1 stepped 0 scale 4' in job.lines('rank 1')
