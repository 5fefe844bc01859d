"""Before LibTorch registers its operators, malloc is tuned (worker/internal/early_malloc.cpp)."""

import os
import pathlib
import subprocess

import pytest
from launches import BIN

HUGE_PAGES = pathlib.Path('/sys/kernel/mm/transparent_hugepage/enabled')


def page_faults(**env):
    """Of a program that does nothing with the LibTorch that it was linked with."""
    child = subprocess.Popen(
        [BIN / 'ex_sampler', '--help'], env={**os.environ, **env}, stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return usage.ru_minflt


@pytest.fixture(autouse=True)
def _malloc_is_glibcs():
    linked = subprocess.run(['ldd', BIN / 'ex_sampler'], capture_output=True, text=True).stdout
    if 'libasan' in linked:
        pytest.skip("malloc is AddressSanitizer's")


def test_programs_start_with_a_heap_of_huge_pages():
    if not HUGE_PAGES.exists() or '[never]' in HUGE_PAGES.read_text():
        pytest.skip('this kernel gives no huge pages')
    assert page_faults() < page_faults(CPPRUN_MALLOC='default') / 2  # 2,600 and 16,000


def test_who_leaves_malloc_alone_is_left_alone():
    as_it_comes = page_faults(CPPRUN_MALLOC='default')
    assert page_faults(MALLOC_TOP_PAD_='131072') > as_it_comes / 2
    assert page_faults(GLIBC_TUNABLES='glibc.malloc.arena_max=2') > as_it_comes / 2
