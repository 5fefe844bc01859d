"""Before LibTorch registers its operators, malloc is tuned (worker/internal/early_malloc.cpp)."""

import subprocess

import pytest
from launches import BIN

GROWS_BY = 64 << 10  # KiB, at once; by default the heap grows in steps, to some 50 MiB


def heap_kib(ranks, **env):
    """The heap of a program that links LibTorch and does not use it."""
    (line,) = ranks.lone_case('trainer', 'heap', env=env).well().lines('heap')
    return int(line.split()[1])


@pytest.fixture(autouse=True)
def _malloc_is_glibcs():
    program = BIN / 'sdk_trainer_cases'
    linked = subprocess.run(['ldd', program], capture_output=True, text=True).stdout
    if 'libasan' in linked:
        pytest.skip("malloc is AddressSanitizer's")


def test_heap_is_reserved_before_libtorch(ranks):
    assert GROWS_BY <= heap_kib(ranks) < 1.5 * GROWS_BY


@pytest.mark.parametrize(
    'own',
    [
        {'CPPRUN_MALLOC': 'default'},
        {'MALLOC_TOP_PAD_': '131072'},
        {'GLIBC_TUNABLES': 'glibc.malloc.arena_max=2'},
    ],
)
def test_malloc_settings_of_the_user_are_kept(ranks, own):
    assert heap_kib(ranks, **own) < GROWS_BY
