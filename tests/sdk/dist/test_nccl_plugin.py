"""The NCCL plugin without a GPU: it loads, and impossible calls report an error."""

from launches import BIN

PLUGIN = BIN.parent / 'lib' / 'libcpprun_nccl.so'


def test_the_plugin_loads(ranks):
    (line,) = ranks.run(BIN / 'sdk_dist_cases', 'load_nccl').well().lines()
    assert line.startswith('gpus ')


def test_named_by_variable(ranks):
    env = {'CPPRUN_NCCL_PLUGIN': str(PLUGIN)}
    assert ranks.run(BIN / 'sdk_dist_cases', 'load_nccl', env=env).well().lines('gpus ')


def test_a_missing_plugin_is_named(ranks):
    env = {'CPPRUN_NCCL_PLUGIN': '/no/such/plugin.so'}
    out = ranks.run(BIN / 'sdk_dist_cases', 'load_nccl', env=env).well().out
    assert 'DistUnsupportedError' in out
    assert '/no/such/plugin.so: no such file' in out


def test_nccl_without_a_gpu_is_refused(ranks):
    env = {'CUDA_VISIBLE_DEVICES': ''}
    lines = ranks.case('dist', 2, 'form', 'backend=nccl', env=env).well().lines()
    assert len(lines) == 2
    assert all('nccl needs a GPU' in line and 'use backend gloo' in line for line in lines)
