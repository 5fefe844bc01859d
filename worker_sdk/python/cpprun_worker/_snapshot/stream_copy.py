"""Copies into an arena that bypass the caches and compute the crc32 meanwhile, by the function of
libcpprun_copy.so (snapshot_files/archive/copy_library.cpp).

The wheel for x86-64 has the library beside this file. CPPRUN_COPY_LIBRARY names another one; if it
is empty, or there is no library, torch copies.
"""

from __future__ import annotations

import array
import ctypes
import functools
import os
import pathlib
import sys
from typing import Any, Sequence, Tuple

import torch

from .state_pickle import Storage, bytes_of

_BESIDE = pathlib.Path(__file__).with_name('libcpprun_copy.so')
# Bytes. With several threads torch copies a part of this size faster than the library with one; for
# a smaller one its call takes longer than the copy.
_THREADS_FROM = 1 << 20

# Of a storage: the storage, the first byte, how many, and their place in the arena.
Part = Tuple[Storage, int, int, int]


def copy(into: torch.Tensor, parts: Sequence[Part]) -> list[int | None]:
    """Copies the parts to their places in `into`: bytes in memory of the CPU. Returns the crc32 of
    each, or None: the copy has not computed it."""
    copy_ranges = _function()
    largest = _THREADS_FROM - 1 if torch.get_num_threads() > 1 else sys.maxsize
    by_library = []
    for i, (storage, begin, size, at) in enumerate(parts):
        if copy_ranges and size <= largest and storage.tensor.is_cpu:
            by_library.append(i)
        else:
            into[at : at + size].copy_(bytes_of(storage.tensor)[begin : begin + size])
    crcs: list[int | None] = [None] * len(parts)
    if by_library:
        found = _copy_at_once(copy_ranges, into.data_ptr(), [parts[i] for i in by_library])
        for i, crc in zip(by_library, found):
            crcs[i] = None if crc < 0 else crc
    return crcs


def _copy_at_once(copy_ranges, base, parts):
    """One call for all parts: a call for each takes longer than the copy of a small one."""
    to = array.array('Q', [base + at for _, _, _, at in parts])
    source = array.array('Q', [storage.address + begin for storage, begin, _, _ in parts])
    sizes = array.array('Q', [size for _, _, size, _ in parts])
    crcs = array.array('q', sizes)
    copy_ranges(len(parts), *(column.buffer_info()[0] for column in (to, source, sizes, crcs)))
    return crcs


@functools.lru_cache(maxsize=None)
def _function() -> Any:
    """cpprun_copy_ranges(), as copy_library.cpp has it; None: there is none."""
    path = os.environ.get('CPPRUN_COPY_LIBRARY')
    if path is None:
        path = str(_BESIDE) if _BESIDE.exists() else ''
    if not path:
        return None
    try:
        call = ctypes.CDLL(path).cpprun_copy_ranges
    except (OSError, AttributeError) as error:
        sys.stderr.write(f'cpprun: saves copy more slowly, by torch: {error}\n')
        return None
    call.argtypes = (ctypes.c_uint64, *[ctypes.c_void_p] * 4)
    call.restype = None
    return call
