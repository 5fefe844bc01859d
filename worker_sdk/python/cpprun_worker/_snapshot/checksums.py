"""crc32 of ranges of memory. For an arena of the agent, the agent computes them: several times as
fast as Python's zlib, whose processor time the training would miss.
"""

from __future__ import annotations

from cpprun_worker._agent import CHECKSUM_BYTES, CHECKSUM_RANGES

from .archive import BIG, crc32, crc32_combine


def crc32s(view, ranges, agent=None):
    """Of each range (offset, bytes) of `view`, in order; `agent`: that keeps this memory for this
    rank, or None. What it does not compute is computed here."""
    crcs, batch = [0] * len(ranges), []  # batch: (index of the range, offset, bytes)
    for index, (at, size) in enumerate(ranges):
        if agent is None or size < BIG:
            crcs[index] = crc32(view[at : at + size])
            continue
        end = at + size
        while at < end:
            room = CHECKSUM_BYTES - sum(each[2] for each in batch)
            if not room or len(batch) == CHECKSUM_RANGES:
                _join(view, batch, agent, crcs)
                continue
            batch.append((index, at, min(end - at, room)))
            at += batch[-1][2]
    _join(view, batch, agent, crcs)
    return crcs


def _join(view, batch, agent, crcs):
    """Appends the pieces of a batch to the checksums of their ranges, and empties the batch."""
    if not batch:
        return
    found = agent.request_checksums([(at, size) for _, at, size in batch])
    if found is None:
        found = [crc32(view[at : at + size]) for _, at, size in batch]
    for (index, _, size), crc in zip(batch, found):
        crcs[index] = crc32_combine(crcs[index], crc, size)
    batch.clear()
