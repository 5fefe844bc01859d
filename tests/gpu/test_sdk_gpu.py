"""The worker SDK on GPUs: results equal Python's, over NCCL and over Gloo with CUDA tensors."""

import pytest
from conftest import GPUS, needs_nccl
from launches import BIN
from sdk_ranks import TWIN

# Modes of tests/sdk/nn/ddp_train_case.cpp.
MODES = 'plain buckets views buffers find_unused_all_used static no_sync unused own_hook'.split()


def test_plugin_sees_the_gpus(ranks):
    (line,) = ranks.lone_case('dist', 'load_nccl').well().lines()
    assert line.startswith(f'gpus {GPUS} ')


@pytest.mark.parametrize(('backend', 'n'), [('nccl', 1), ('nccl', 2), ('gloo', 2)])
def test_ddp_equals_python(ranks, backend, n):
    if backend == 'nccl':
        needs_nccl(n)
    args = (f'on={backend}:cuda', *MODES)
    ours = ranks.case('nn', n, 'ddp_train', *args, seconds=120).well().lines()
    pythons = ranks.twin(n, 'ddp_train.py', *args, seconds=180).well().lines()
    assert len(ours) == n * len(MODES) * 201
    assert ours == pythons


def test_collectives_equal_python(ranks):
    needs_nccl(3)
    ours = ranks.case('dist', 3, 'differential', 'backend=nccl').well().lines()
    pythons = ranks.twin(3, 'collectives.py', 'backend=nccl').well().lines()
    assert len(ours) > 1000
    assert ours == pythons


def test_save_while_tensors_change(ranks):
    """The copy to the CPU has a stream of its own, behind the work that is queued."""
    (line,) = ranks.lone_case('snapshot', 'gpu_save').well().lines()
    assert line.startswith('equal from step 3;'), line


def test_mixed_world_over_nccl(ranks):
    """One rank is C++ and the other Python."""
    needs_nccl(2)
    args = ('on=nccl:cuda', *MODES)
    alike = ranks.twin(2, 'ddp_train.py', *args, seconds=180).well().lines()
    script = (
        f'if [ "$RANK" = 1 ]; then exec {BIN}/sdk_nn_cases ddp_train "$@"; '
        f'else exec {TWIN}/ddp_train.py "$@"; fi'
    )
    mixed = ranks.cpprun(2, 'bash', '-c', script, 'bash', *args, seconds=120).well().lines()
    assert mixed == alike
