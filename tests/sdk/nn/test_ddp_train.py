"""DistributedDataParallel against Python's, in all modes: losses and results, bit for bit."""

import pytest
from launches import BIN, ROOT
from torch_python import PYTHON

TWINS = ROOT / 'tests' / 'sdk' / 'twins'
EXACT = [
    'plain',
    'arrow',
    'buckets',
    'views',
    'buffers',
    'find_unused_all_used',
    'static',
    'static_views',
    'static_unused',
    'no_sync',
    'no_sync_views',
    'no_sync_unused',
    'unused',
    'unused_views',
    'own_hook',
    'allreduce_hook',
]
# Largest difference of a loss; these hooks may round in another order.
CLOSE = {'fp16_hook': 1e-4, 'fp16_wrapper': 1e-4, 'bf16_hook': 1e-3, 'power_sgd': 1e-4}
STEPS = 200


def losses(lines):
    return [float(line.split()[-1]) for line in lines if ' loss ' in line]


def results(ended, mode):
    """The final models of the ranks: one hash for each rank."""
    return {line.split()[-1] for line in ended.lines(f'{mode} end ')}


def differences(mode, ours, theirs, n):
    """Texts for results that differ from Python's in this mode, or between our ranks."""
    mine, pythons = ours.lines(f'{mode} '), theirs.lines(f'{mode} ')
    pairs = list(zip(losses(mine), losses(pythons), strict=False))
    if len(losses(mine)) != n * STEPS or len(pairs) != n * STEPS:
        yield f'{mode}: {len(losses(mine))} losses, Python has {len(losses(pythons))}'
    if mode in EXACT and mine != pythons:
        yield f'{mode}: lines differ'
    worst = max((abs(a - b) for a, b in pairs), default=0)
    if worst > CLOSE.get(mode, 0):
        yield f'{mode}: a loss is off by {worst}'
    # Statistics of BatchNorm are each rank's own: only rank 0's are broadcast, before a forward.
    if mode != 'buffers' and len(results(ours, mode)) != 1:
        yield f'{mode}: ranks end with different models'


# One test for all modes: each program's start and imports would cost more than the training.
@pytest.mark.parametrize('n', [2, 3])
def test_results_equal_python(ranks, n):
    modes = [*EXACT, *CLOSE]
    ours = ranks.case('nn', n, 'ddp_train', *modes, seconds=120).well()
    theirs = ranks.twin(n, 'ddp_train.py', *modes, seconds=180).well()
    found = [text for mode in modes for text in differences(mode, ours, theirs, n)]
    assert not found, '\n'.join(found)


def test_comparison_detects_a_difference(ranks):
    """A 16-bit hook must differ from plain averaging, or nothing was compared."""
    ours = ranks.case('nn', 2, 'ddp_train', 'buckets', 'bf16_hook').well()
    plain = [line.split(' ', 1)[1] for line in ours.lines('buckets loss ')]
    assert [line.split(' ', 1)[1] for line in ours.lines('bf16_hook loss ')] != plain


MIXED = ['plain', 'views', 'buffers', 'unused', 'static', 'no_sync', 'fp16_hook']


@pytest.mark.parametrize('cpp_rank', [0, 1])
def test_cpp_and_python_ranks_train_together(ranks, cpp_rank):
    """One job of which one rank is C++ and the other Python gives the same numbers."""
    ours = ranks.case('nn', 2, 'ddp_train', *MIXED).well()
    script = (
        f'if [ "$RANK" = {cpp_rank} ]; then exec {BIN}/sdk_nn_cases ddp_train "$@"; '
        f'else exec {PYTHON} -u {TWINS}/run.py {TWINS}/ddp_train.py "$@"; fi'
    )
    mixed = ranks.cpprun(2, 'bash', '-c', script, 'bash', *MIXED, seconds=120).well()
    for mode in MIXED:
        assert mixed.lines(f'{mode} ') == ours.lines(f'{mode} ')
