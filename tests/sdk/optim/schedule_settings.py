"""Option sets for learning rate schedules: edge cases by hand, the rest at random."""

import itertools
import random

STEPS = 1000
GROUPS = (('sgd', [0.1]), ('sgd', [0.1, 0.003, 1.7]), ('adam', [0.1, 0.003, 1.7]))


def simple():
    for factor, total in itertools.product((1 / 3, 0.1, 1.0), (0, 1, 5, 400)):
        yield {'kind': 'ConstantLR', 'factor': factor, 'total_iters': total}
    for start, end, total in itertools.product((1 / 3, 0.01, 1.0), (1.0, 0.25, 0.0), (1, 7, 999)):
        yield {'kind': 'LinearLR', 'start_factor': start, 'end_factor': end, 'total_iters': total}
    for size, gamma in itertools.product((1, 3, 250), (0.1, 0.97, 1.01)):
        yield {'kind': 'StepLR', 'step_size': size, 'gamma': gamma}
    for milestones in ([], [1, 2, 3], [900, 30, 30, 80], [0, 5]):
        yield {'kind': 'MultiStepLR', 'milestones': milestones, 'gamma': 0.3}
    for gamma in (0.9, 0.999, 1.003):
        yield {'kind': 'ExponentialLR', 'gamma': gamma}
    for decays in ([0.95], [0.95, 0.9, 1.0]):
        yield {'kind': 'LambdaLR', 'decays': decays}
        yield {'kind': 'MultiplicativeLR', 'decays': [decay**0.01 for decay in decays]}
    for total, power in itertools.product((0, 1, 7, 999), (1.0, 0.5, 3.0)):
        yield {'kind': 'PolynomialLR', 'total_iters': total, 'power': power}


def cyclic(groups):
    for mode, up, down in itertools.product(
        ('triangular', 'triangular2', 'exp_range'), (1, 37, 400), (None, 1, 90)
    ):
        yield {
            'kind': 'CyclicLR',
            'base_lr': [0.01, 0.02, 0.001] if groups == 3 else 0.01,
            'max_lr': [0.5, 0.2, 0.7] if groups == 3 else 0.4,
            'step_size_up': up,
            'step_size_down': down,
            'mode': mode,
            'gamma': 0.995,
        }
    plain = {'kind': 'CyclicLR', 'base_lr': 0.02, 'max_lr': 0.1, 'step_size_up': 20}
    yield {**plain, 'cycle_momentum': False}
    yield {**plain, 'base_momentum': 0.5, 'max_momentum': 0.99}


def chains():
    parts = [
        {'kind': 'ConstantLR', 'factor': 0.1, 'total_iters': 20},
        {'kind': 'ExponentialLR', 'gamma': 0.99},
        {'kind': 'PolynomialLR', 'total_iters': 300, 'power': 0.9},
        {'kind': 'MultiplicativeLR', 'decays': [0.999]},
        {'kind': 'StepLR', 'step_size': 30, 'gamma': 0.5},
    ]
    for first, second in itertools.permutations(parts, 2):
        yield {'kind': 'ChainedScheduler', 'schedulers': [first, second]}
    yield {'kind': 'ChainedScheduler', 'schedulers': parts}


def cosine():
    for most, lowest in itertools.product((1, 2, 3, 10, 97, 1000), (0.0, 0.001)):
        yield {'kind': 'CosineAnnealingLR', 'T_max': most, 'eta_min': lowest}
    for first, times, lowest in itertools.product((1, 10, 33), (1, 2, 3), (0.0, 0.002)):
        kind = 'CosineAnnealingWarmRestarts'
        yield {'kind': kind, 'T_0': first, 'T_mult': times, 'eta_min': lowest}


def one_cycle(groups):
    for share, strategy, phases in itertools.product(
        (0.3, 0.05, 0.5), ('cos', 'linear'), (False, True)
    ):
        if phases and share == 0.5:
            continue  # its last phase has no steps, and Python divides by zero
        yield {
            'kind': 'OneCycleLR',
            'max_lr': [0.5, 0.2, 0.7] if groups == 3 else 0.4,
            'total_steps': STEPS,
            'pct_start': share,
            'anneal_strategy': strategy,
            'three_phase': phases,
        }
    yield {'kind': 'OneCycleLR', 'max_lr': 0.1, 'epochs': 50, 'steps_per_epoch': 20}
    yield {'kind': 'OneCycleLR', 'max_lr': 0.1, 'total_steps': STEPS, 'cycle_momentum': False}
    yield {
        'kind': 'OneCycleLR',
        'max_lr': 0.1,
        'total_steps': STEPS,
        'base_momentum': 0.5,
        'max_momentum': 0.99,
        'div_factor': 7.0,
        'final_div_factor': 123.0,
    }


def sequences():
    linear = {'kind': 'LinearLR', 'start_factor': 0.1, 'total_iters': 20}
    parts = [
        {'kind': 'ConstantLR', 'factor': 0.1, 'total_iters': 0},
        {'kind': 'LinearLR', 'start_factor': 0.5, 'total_iters': 10},
        {'kind': 'StepLR', 'step_size': 30, 'gamma': 0.5},
        {'kind': 'MultiStepLR', 'milestones': [0, 40, 90], 'gamma': 0.2},
        {'kind': 'ExponentialLR', 'gamma': 0.99},
        {'kind': 'CosineAnnealingLR', 'T_max': 50, 'eta_min': 0.001},
        {'kind': 'CosineAnnealingWarmRestarts', 'T_0': 12, 'T_mult': 2},
        {'kind': 'LambdaLR', 'decays': [0.97]},
        {'kind': 'MultiplicativeLR', 'decays': [0.98]},
        {'kind': 'PolynomialLR', 'total_iters': 80, 'power': 2.0},
        {'kind': 'CyclicLR', 'base_lr': 0.05, 'max_lr': 0.3, 'step_size_up': 9},
        {'kind': 'OneCycleLR', 'max_lr': 0.3, 'total_steps': 2000},
    ]
    for first, second in itertools.product(parts, parts):
        if (first['kind'], second['kind']) == ('OneCycleLR', 'CyclicLR'):
            continue  # both keep momenta in the groups: Python's OneCycleLR takes CyclicLR's
        yield {'kind': 'SequentialLR', 'schedulers': [first, second], 'milestones': [100]}
    nested = {'kind': 'SequentialLR', 'schedulers': [linear, parts[4]], 'milestones': [20]}
    yield {'kind': 'SequentialLR', 'schedulers': [nested, *parts[2:4]], 'milestones': [60, 61]}


def plateaus():
    for mode, threshold, cooldown, lowest in itertools.product(
        ('min', 'max'), ('rel', 'abs'), (0, 3), (0, 0.01)
    ):
        yield {
            'kind': 'ReduceLROnPlateau',
            'mode': mode,
            'threshold_mode': threshold,
            'cooldown': cooldown,
            'min_lr': lowest,
            'factor': 0.7,
            'patience': 4,
        }


def settings():
    numbers = random.Random(4)
    metrics = [numbers.gauss(1, 0.3) + 30 / (30 + at) for at in range(STEPS)]
    places = [at / 3.7 for at in range(STEPS)]
    for optimizer, lrs in GROUPS:
        common = {'optimizer': optimizer, 'lrs': lrs, 'steps': STEPS}
        n = len(lrs)
        schedules = [*simple(), *cosine(), *one_cycle(n), *cyclic(n), *sequences(), *chains()]
        for at, schedule in enumerate(schedules):
            if len(schedule.get('decays', [0])) in (1, len(lrs)):
                yield {**common, 'schedule': schedule, 'halve_at': 57 if at % 2 else -1}
        for schedule in plateaus():
            yield {**common, 'schedule': schedule, 'metrics': metrics}
        for times in (1, 2, 3):
            schedule = {'kind': 'CosineAnnealingWarmRestarts', 'T_0': 10, 'T_mult': times}
            yield {**common, 'schedule': schedule, 'places': places}
