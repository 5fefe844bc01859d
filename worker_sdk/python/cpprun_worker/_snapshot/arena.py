"""Memory in which a worker keeps the state of its training for the worker that replaces it.

Under cpprun it belongs to the agent, one arena per local rank, and outlives the worker. An arena
has two slots: while one is written, the other keeps the last complete shard. The layout of the head
is that of snapshot_files/folders/arena_slots.hpp, since agents copy slots between nodes. A reader
verifies what it reads: the writer may have been killed in the middle.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
import threading
import weakref
from typing import NamedTuple

import cpprun_worker

from . import checksums, device_copy
from .archive import BLOCK, align_up

_MAGIC = 0x31544F4C53525043  # "CPRSLOT1"
_EMPTY, _WRITING, _STAGED, _COMPLETE = range(4)
_HEAD = 4096  # bytes
_ALIGNMENT = BLOCK  # of slots, so that files can be written from them without the page cache
# Index of 8-byte words: of the first record, of each further one, and within a record.
_RECORDS, _RECORD = 8, 9
_STATE, _NUMBER, _OFFSET, _BYTES, _CRC, _STEP, _ROUND, _RANK, _WORLD = range(9)
_NUMBER_MAX = 2**62
_POPULATE_WRITE = 23  # MADV_POPULATE_WRITE of Linux 5.14
_COLLAPSE = 25  # MADV_COLLAPSE of Linux 6.1: huge pages for shared memory
_HUGE_PAGE = 2 << 20
_barrier = threading.Lock()
_reported = threading.Event()


class Label(NamedTuple):
    """Identifies the content of a slot."""

    step: int
    round: int
    rank: int
    world: int


class Slot(NamedTuple):
    index: int
    label: Label
    number: int  # grows with each begin()
    crc: int
    is_complete: bool
    at: int
    size: int


def arena_bytes(size):
    """The size of an arena for two slots of `size` bytes each."""
    return _HEAD + 2 * align_up(size, _ALIGNMENT)


class Arena:
    """Mapped memory."""

    def __init__(self, memory, is_agents):
        self.memory = memory  # mmap
        self.view = memoryview(memory)
        self.is_agents = is_agents
        self._is_pinned = False
        for advice in ('MADV_HUGEPAGE', 'MADV_DONTDUMP', 'MADV_DONTFORK'):
            _advise(memory, getattr(mmap, advice, None))

    @classmethod
    def own(cls, size):
        """This rank's arena, of at least `size` bytes: of the agent, else of this process. 0: as
        large as it is; None if there is none."""
        agent = cpprun_worker._own_agent()
        if agent:
            try:
                memory = agent.request_arena(size)
                return cls(memory, True) if memory else None
            except OSError as error:
                _report_refusal(error)
        return cls.of_process(size) if size else None

    @classmethod
    def of_process(cls, size):
        return cls(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS), False)

    @classmethod
    def of(cls, local_rank):
        """The arena of another worker of this node. OSError: there is none."""
        agent = cpprun_worker._own_agent()
        memory = agent.request_peer_arena(local_rank) if agent else None
        if memory is None:
            raise OSError(f'local rank {local_rank} keeps nothing in memory')
        return cls(memory, True)

    def crc32s(self, ranges):
        """Of each range (offset, bytes): by the agent if this is its memory of this rank."""
        agent = cpprun_worker._own_agent() if self.is_agents else None
        return checksums.crc32s(self.view, ranges, agent)

    def make_ready(self, gpu):
        """So that the first save need not wait for the kernel. `gpu`: as for pin(), or None."""
        self.touch()
        if gpu is not None:
            self.pin(gpu)

    def pin(self, device):
        """Lets GPUs write into it beside their kernels. `device`: that this process uses."""
        if self._is_pinned:
            return
        self._is_pinned = True
        address = self._address()
        if device_copy.pin(address, len(self.view), device):
            weakref.finalize(self, device_copy.unpin, address).atexit = False

    def _address(self):
        return ctypes.addressof(ctypes.c_char.from_buffer(self.memory))

    def touch(self):
        """Lets the kernel make all pages, huge ones where it can: a copy into pages that are not
        there takes ten times as long. Keeps the content; may run beside a copy, without Python's
        interpreter lock. Without effect before Linux 5.14."""
        call = getattr(ctypes.CDLL(None), 'madvise', None)
        if call is None:
            return
        call.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
        start, size = self._address(), len(self.view)
        begin = align_up(start, _HUGE_PAGE)
        end = (start + size) // _HUGE_PAGE * _HUGE_PAGE
        if self.is_agents and begin < end:
            for place in range(begin - start, end - start, _HUGE_PAGE):
                self.view[place]  # the call requires a page of each
            call(begin, end - begin, _COLLAPSE)
        call(start, size, _POPULATE_WRITE)


def _advise(memory, advice, *of):
    try:
        if advice is not None:
            memory.madvise(advice, *of)
    except (OSError, ValueError):
        pass  # an old kernel: slower, nothing else


def _report_refusal(why):
    if not _reported.is_set():
        _reported.set()
        sys.stderr.write(
            'cpprun: after a crash of this worker its snapshot is read from disk, not from memory: '
            f'{why}\n'
        )


class Slots:
    """The two slots of an arena. One thread at a time."""

    def __init__(self, arena):
        self._arena = arena
        self._size = len(arena.view)
        self._words = arena.view[:_HEAD].cast('Q')
        self._begun = None

    def all(self):
        """The staged and complete slots, the last one begun first. Skips what is not valid."""
        if self._words[0] != _MAGIC:
            return []
        found = filter(None, map(self._read, range(2)))
        return sorted(found, key=lambda slot: -slot.number)

    def newest(self):
        return next((slot for slot in self.all() if slot.is_complete), None)

    def begin(self, label, size, needed_at=None):
        """Returns the offset of `size` bytes to fill; call staged() then. The newest complete slot
        stays, unless the arena is too small for both. MemoryError: that slot is the one at
        `needed_at`, which has to stay. Requires: the arena has room for the slot."""
        if self._words[0] != _MAGIC:
            for index in range(2):
                self._set(index, _STATE, _EMPTY)
            self._words[0] = _MAGIC
        slots, kept = self.all(), self.newest()
        at = self._place_beside(kept, align_up(size, _ALIGNMENT)) if kept else None
        if at is None and needed_at is not None:
            raise MemoryError('the state has grown, and the last save is still being written')
        index = 1 - kept.index if at is not None else 0
        # Before any other field or the content changes: the slot must not look complete.
        self._set_state(index, _EMPTY)
        if at is None:
            self._set_state(1, _EMPTY)
            at = _HEAD
        fields = (slots[0].number + 1 if slots else 1, at, size, 0, *label)
        for field, value in enumerate(fields, _NUMBER):
            self._set(index, field, value)
        self._set_state(index, _WRITING)
        self._begun = index
        return at

    def staged(self, crc):
        self._set(self._begun, _CRC, crc)
        self._set_state(self._begun, _STAGED)

    def complete(self, step):
        """Marks the staged slot of this step as complete. Requires: all ranks have staged it."""
        for slot in self.all():
            if slot.label.step == step:
                self._set_state(slot.index, _COMPLETE)
                return

    def _set(self, index, field, value):
        self._words[_RECORDS + _RECORD * index + field] = value

    def _set_state(self, index, state):
        with _barrier:  # the processor orders the stores before and behind it
            self._set(index, _STATE, state)
        with _barrier:
            pass

    def _place_beside(self, kept, size):
        """At the front or at the very end, so that the free space stays contiguous."""
        if kept.at >= _HEAD + size:
            return _HEAD
        end = self._size // _ALIGNMENT * _ALIGNMENT
        return end - size if end - align_up(kept.at + kept.size, _ALIGNMENT) >= size else None

    def _read(self, index):
        """Reads every field once and checks the copies: other processes may write meanwhile."""
        first = _RECORDS + _RECORD * index
        fields = self._words[first : first + _RECORD].tolist()
        state, number, at, size, crc, *label = fields
        label = Label(*label)
        is_inside = _HEAD <= at <= self._size and size <= self._size - at
        is_good = (
            state in (_STAGED, _COMPLETE)
            and is_inside
            and label.rank < label.world < 2**31
            and label.step < 2**63
            and crc < 2**32
            and number < _NUMBER_MAX
            and self._words[first] == state
        )
        return Slot(index, label, number, crc, state == _COMPLETE, at, size) if is_good else None
