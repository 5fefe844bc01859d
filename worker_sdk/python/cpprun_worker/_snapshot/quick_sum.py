"""A checksum that is computed about as fast as the memory is read, to verify a copy in memory
before it is loaded. zlib's crc32, which is several times slower, would take most of that time.

It is a sum of the 64-bit words with odd factors that follow from their places, modulo 2^64. So a
word that differs, or two that are exchanged within a row, change it. It is no protection from an
attacker. Vectors of torch multiply integers in one thread and without Python's interpreter lock.
"""

from __future__ import annotations

import functools

import torch

from .archive import crc32

_ROW = 4096  # words: the factors of a row stay in the processor's first cache
_ROWS = 128  # of one call of torch
_MODULO = 2**64
_STEP = 0x9E3779B97F4A7C15  # odd


@functools.lru_cache(maxsize=None)
def _factors(count):
    return torch.arange(count, dtype=torch.int64) * 2 + 1


def quick_sum(content) -> int:
    """Of a buffer that begins at a multiple of 8 bytes."""
    whole = len(content) // (8 * _ROW)  # rows
    result, at = 0, 0
    while at < whole:
        count = min(_ROWS, whole - at)
        words = torch.frombuffer(
            content, dtype=torch.int64, count=count * _ROW, offset=at * _ROW * 8
        )
        rows = torch.mv(words.view(count, _ROW), _factors(_ROW))
        result = (result * _STEP + int(torch.dot(rows, _factors(count)))) % _MODULO
        at += count
    return (result * _STEP + crc32(memoryview(content)[whole * _ROW * 8 :])) % _MODULO
