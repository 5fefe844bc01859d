"""DistributedDataParallel against Python's, in all modes: losses and results, bit for bit."""

import os

import pytest
from launches import BIN, ROOT

PYTHON = os.environ.get('TORCH_PYTHON', str(ROOT / '.venv' / 'bin' / 'python'))
TWINS = ROOT / 'tests' / 'sdk' / 'twins'
EXACT = [
    'plain',
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
    """What the ranks' models came to: one hash for each rank."""
    return {line.split()[-1] for line in ended.lines(f'{mode} end ')}


@pytest.fixture(scope='module')
def both():
    """One run of each program with all modes, by world size."""
    return {}


def run_both(both, ranks, n):
    if n not in both:
        modes = [*EXACT, *CLOSE]
        ours = ranks.case('nn', n, 'ddp_train', *modes, seconds=120).well()
        theirs = ranks.twin(n, 'ddp_train.py', *modes, seconds=180).well()
        both[n] = ours, theirs
    return both[n]


@pytest.mark.parametrize('n', [2, 3])
@pytest.mark.parametrize('mode', EXACT)
def test_equal_in_every_bit(ranks, both, n, mode):
    ours, theirs = run_both(both, ranks, n)
    assert len(ours.lines(f'{mode} loss ')) == n * STEPS
    assert ours.lines(f'{mode} ') == theirs.lines(f'{mode} ')


@pytest.mark.parametrize('n', [2, 3])
@pytest.mark.parametrize('mode', list(CLOSE))
def test_close(ranks, both, n, mode):
    ours, theirs = run_both(both, ranks, n)
    pairs = list(zip(losses(ours.lines(f'{mode} ')), losses(theirs.lines(f'{mode} ')), strict=True))
    assert len(pairs) == n * STEPS
    assert max(abs(a - b) for a, b in pairs) <= CLOSE[mode]


@pytest.mark.parametrize('n', [2, 3])
@pytest.mark.parametrize('mode', [*EXACT, *CLOSE])
def test_ranks_end_equal(ranks, both, n, mode):
    # Statistics of BatchNorm are each rank's own: only rank 0's spread, before a forward.
    if mode != 'buffers':
        assert len(results(run_both(both, ranks, n)[0], mode)) == 1


def test_the_comparison_is_alive(ranks, both):
    """A 16-bit hook must differ from plain averaging, or nothing was compared."""
    ours, _ = run_both(both, ranks, 2)
    plain = [line.split(' ', 1)[1] for line in ours.lines('buckets loss ')]
    assert [line.split(' ', 1)[1] for line in ours.lines('bf16_hook loss ')] != plain


MIXED = ['plain', 'views', 'buffers', 'unused', 'static', 'no_sync', 'fp16_hook']


@pytest.mark.parametrize('cpp_rank', [0, 1])
def test_mixed_world(ranks, both, cpp_rank):
    """One job of which one rank is C++ and the other Python gives the same numbers."""
    ours, _ = run_both(both, ranks, 2)
    script = (
        f'if [ "$RANK" = {cpp_rank} ]; then exec {BIN}/sdk_nn_cases ddp_train "$@"; '
        f'else exec {PYTHON} -u {TWINS}/ddp_train.py "$@"; fi'
    )
    mixed = ranks.cpprun(2, 'bash', '-c', script, 'bash', *MIXED, seconds=120).well()
    for mode in MIXED:
        assert mixed.lines(f'{mode} ') == ours.lines(f'{mode} ')
