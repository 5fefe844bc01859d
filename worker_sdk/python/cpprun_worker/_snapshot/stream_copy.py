"""Copies into an arena that bypass the caches and compute the crc32 meanwhile, by the function of
libcpprun_copy.so (snapshot_files/archive/copy_library.cpp).

The wheel for x86-64 has the library beside this file. CPPRUN_COPY_LIBRARY names another one; if it
is empty, or there is no library, torch copies.
"""

from __future__ import annotations

import ctypes
import functools
import os
import pathlib
import sys
from typing import Any

import torch

from .state_pickle import bytes_of

_BESIDE = pathlib.Path(__file__).with_name('libcpprun_copy.so')


def copy(into: torch.Tensor, at: int, source: torch.Tensor, begin: int, size: int) -> int | None:
    """Copies `size` bytes of a tensor's storage, from `begin` on, to `into[at:]`: bytes in memory
    of the CPU. Returns their crc32, or None: the copy does not compute it."""
    call = _function()
    # torch copies with all its threads, which is faster than this with one.
    if call is None or not source.is_cpu or torch.get_num_threads() > 1:
        into[at : at + size].copy_(bytes_of(source)[begin : begin + size])
        return None
    crc = call(into.data_ptr() + at, source.untyped_storage().data_ptr() + begin, size)
    return None if crc < 0 else crc


@functools.lru_cache(maxsize=None)
def _function() -> Any:
    """int64_t cpprun_copy(void* to, const void* from, uint64_t bytes); None: there is none."""
    path = os.environ.get('CPPRUN_COPY_LIBRARY')
    if path is None:
        path = str(_BESIDE) if _BESIDE.exists() else ''
    if not path:
        return None
    try:
        call = ctypes.CDLL(path).cpprun_copy
    except (OSError, AttributeError) as error:
        sys.stderr.write(f'cpprun: saves copy more slowly, by torch: {error}\n')
        return None
    call.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
    call.restype = ctypes.c_int64
    return call
