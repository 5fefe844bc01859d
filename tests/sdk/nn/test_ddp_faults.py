"""Failures around DistributedDataParallel end in a named error on every rank, in time."""

import pytest
from launches import BIN
from torch_python import PYTHON

DIFFERENT = {
    'name': ('parameter bias', 'parameter gain'),
    'order': ('parameter weight', 'parameter bias'),
    'shape': ('[4]', '[5]'),
    'dtype': ('Float [4]', 'Double [4]'),
    'requires_grad': ('bias', 'without gradient'),
    'more': ('nothing more', 'parameter extra'),
    'buffer': ('nothing more', 'buffer count'),
    'option': ('find_unused_parameters false', 'find_unused_parameters true'),
}


@pytest.mark.parametrize('what', list(DIFFERENT))
def test_models_that_differ_between_ranks_are_refused(ranks, what):
    ended = ranks.case('nn', 3, 'ddp_different_models', what, seconds=15).well()
    errors = ended.lines('error ')
    assert len(errors) == 3
    first, second = DIFFERENT[what]
    for error in errors:
        assert 'rank 0 has' in error and 'rank 1 has' in error
        assert first in error.split('rank 1 has')[0]
        assert second in error.split('rank 1 has')[1]


WRAPS = """
import sys, torch, torch.distributed as dist
dist.init_process_group('gloo')
sizes, bias = map(int, sys.argv[1].split('x')), 'bias' in sys.argv
try:
    torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(*sizes, bias=bias))
except RuntimeError as error:
    print('Python refuses it')
"""


@pytest.mark.parametrize(
    ('cpp_rank', 'theirs', 'text'),
    [
        (0, '3x4', 'rank 0 has 2 parameters, rank 1 has 1'),
        (1, '3x4', 'rank 1 has 2 parameters, rank 0 has 1'),
        (1, '6x2 bias', 'the parameters of rank 1 have other sizes or strides than those of rank'),
    ],
)
def test_python_rank_with_another_model(ranks, cpp_rank, theirs, text):
    """The ranks do not see each other's descriptions, and compare by collectives."""
    script = (
        f'if [ "$RANK" = {cpp_rank} ]; then exec {BIN}/sdk_nn_cases ddp_different_models ""; '
        f'else exec {PYTHON} -c "$0" {theirs}; fi'
    )
    ended = ranks.cpprun(2, 'bash', '-c', script, WRAPS, seconds=20)
    (error,) = ended.lines(f'error {cpp_rank} ')
    assert text in error, ended.err


def test_rank_that_never_wraps_is_named(ranks):
    ended = ranks.case('nn', 2, 'ddp_missing_rank', seconds=15).well()
    assert 'rank(s) 1 to wrap their model' in ended.lines('error 0 ')[0]


def test_peer_killed_inside_backward(ranks):
    ended = ranks.case('nn', 2, 'ddp_killed', flags=['--max-restarts=0'], seconds=15)
    assert ended.code == 1
    assert 'SIGKILL' in ended.err or 'Signal 9' in ended.err


def test_exception_in_one_forward(ranks):
    errors = ranks.case('nn', 2, 'ddp_forward_throws', seconds=20).well().lines('error ')
    assert len(errors) == 2
    assert 'mat1 and mat2' in errors[1]


def test_uneven_without_join(ranks):
    ended = ranks.case('nn', 2, 'ddp_uneven', seconds=20).well()
    assert 'onnection' in ended.lines('error 1 ')[0]


def test_a_stalled_peer_times_out(ranks):
    ended = ranks.case('nn', 2, 'ddp_stalled', seconds=20).well()
    assert 'imed out' in ended.lines('error 0 ')[0]


def test_unused_parameters_are_named(ranks):
    errors = ranks.case('nn', 2, 'ddp_unused', seconds=20).well().lines('error ')
    assert len(errors) == 2
    for error in errors:
        assert 'right.weight, right.bias, never.weight, never.bias' in error
        assert 'find_unused_parameters = true' in error
        assert 'left.weight' not in error


def test_marked_twice_is_named(ranks):
    errors = ranks.case('nn', 2, 'ddp_backward_twice', seconds=20).well().lines('error ')
    assert len(errors) == 2
    assert all('third.bias' in error for error in errors)


def test_ddp_and_its_model_may_end_in_any_order(ranks):
    ended = ranks.case('nn', 2, 'ddp_lifetimes', seconds=20).well()
    assert ended.lines() == ['quiet', 'quiet']


def test_training_past_the_wrapper_warns_once(ranks):
    ended = ranks.case('nn', 2, 'ddp_bypassed', seconds=20).well()
    assert len(set(ended.lines('end '))) == 2
    (warning,) = [line for line in ended.err.splitlines() if 'without a forward' in line]
    assert 'Cure: train with ddp(x)' in warning
