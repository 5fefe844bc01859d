"""The ranks that make a snapshot together, and which of them see the same folder."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import pickle
import sys
import threading
from typing import NamedTuple

import torch
import torch.distributed as dist

from cpprun_worker import _environment

from . import files
from .files import OutputFile, SnapshotFileError

# A rank waits this long for the shards of the others; then it gives this snapshot up.
SHARDS_TIMEOUT = datetime.timedelta(seconds=600)
# After this time a training thread reports that it waits for other ranks. A rank may well be some
# seconds behind the others, and a user soon kills a program that does nothing.
REMINDER = datetime.timedelta(seconds=30)
NO_MARKER = 'none'
_ROW = 256  # bytes of a rank in a gather of short values, 8 of them for the length


class Ranks:
    """The ranks of the default process group; without one, this process alone. It has three Gloo
    groups of its own: for the training thread, for the thread that completes saves in memory, and
    for the thread that writes them to disk."""

    def __init__(self):
        self.rank, self.world = 0, 1
        self._has_reminded = False
        self._training = self._staging = self._writing = None
        if dist.is_available() and dist.is_initialized():
            self.rank, self.world = dist.get_rank(), dist.get_world_size()
        elif _environment.number('WORLD_SIZE', 1) > 1:
            raise RuntimeError(
                'a Snapshot was made before the process group: call init_process_group() first'
            )
        if self.world > 1:
            with self._reminding():
                self._training, self._staging, self._writing = (
                    dist.new_group(backend='gloo', timeout=SHARDS_TIMEOUT) for _ in range(3)
                )
        self.local_rank = _environment.number('LOCAL_RANK', 0)
        self.first_of_node = self.rank - self.local_rank
        count = _environment.number('LOCAL_WORLD_SIZE', 1)
        self.of_node = range(self.first_of_node, self.first_of_node + count)
        self.is_first = self.rank == 0

    @contextlib.contextmanager
    def _reminding(self):
        timer = threading.Timer(REMINDER.total_seconds(), self._remind)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _finish(self, work):
        """Waits for a collective of the training thread."""
        try:
            work.wait(REMINDER)
        except RuntimeError:  # the time is over, or it has failed
            if not work.is_completed():
                self._remind()
            work.wait()

    def _remind(self):
        """On ranks 0 and 1 only: if one of a thousand ranks is slow, the others wait for it."""
        if self._has_reminded or self.rank > 1:
            return
        self._has_reminded = True
        sys.stderr.write(
            f'cpprun: rank {self.rank} has waited {REMINDER.total_seconds():g} s for other ranks '
            'in a call of Snapshot: all ranks have to make the Snapshot and call its methods at '
            'the same steps, not only one of them (`if rank == 0:`)\n'
        )

    def local_rank_of(self, rank):
        """None for a rank of another node."""
        return rank - self.first_of_node if rank in self.of_node else None

    def gather(self, value):
        """The values of all ranks. All ranks call it, in the training thread."""
        return self._gather(value, self._training)

    @property
    def training_group(self):
        """The Gloo group of the training thread; None for a single rank."""
        return self._training

    def gather_of_stagers(self, value):
        """The same in the thread that completes saves in memory."""
        return self._gather(value, self._staging)

    def gather_of_writers(self, value):
        """The same in the thread that writes to disk."""
        return self._gather(value, self._writing)

    def any(self, value):
        """Whether it is true on any rank. Cheaper than gather()."""
        return bool(self.highest([int(bool(value))])[0])

    def highest(self, numbers):
        """The highest of each of these numbers on all ranks."""
        return self.begin_highest(numbers)()

    def begin_highest(self, numbers):
        """highest() in two halves, so that training continues while the ranks agree: call what it
        returns."""
        if self.world == 1:
            return lambda: list(numbers)
        found = torch.tensor(numbers, dtype=torch.int64)
        work = dist.all_reduce(found, dist.ReduceOp.MAX, group=self._training, async_op=True)

        def result():
            self._finish(work)
            return found.tolist()

        return result

    def numbers_of_first(self, numbers):
        """Rank 0's integers. All ranks give as many."""
        if self.world == 1:
            return list(numbers)
        found = torch.tensor(numbers, dtype=torch.int64)
        self._finish(dist.broadcast(found, 0, group=self._training, async_op=True))
        return found.tolist()

    def _gather(self, value, group):
        """One collective for short values, as nearly all are; all_gather_object() makes two."""
        if self.world == 1:
            return [value]
        packed = pickle.dumps(value)
        own = (len(packed).to_bytes(8, 'little') + packed[: _ROW - 8]).ljust(_ROW, b'\0')
        rows = torch.empty(self.world, _ROW, dtype=torch.uint8)
        mine = torch.frombuffer(bytearray(own), dtype=torch.uint8)
        work = dist.all_gather(list(rows.unbind()), mine, group=group, async_op=True)
        self._finish(work) if group is self._training else work.wait()
        found = [bytes(row) for row in rows.tolist()]
        lengths = [int.from_bytes(row[:8], 'little') for row in found]
        if max(lengths) <= _ROW - 8:
            return [pickle.loads(row[8 : 8 + n]) for row, n in zip(found, lengths)]
        gathered = [None] * self.world
        dist.all_gather_object(gathered, value, group=group)
        return gathered


class Share(NamedTuple):
    """A file is divided into pieces of equal size. The rank copies those of `kept` into memory, so
    that its node has all of them, and writes `written` to disk."""

    pieces: int
    kept: range
    written: int


WHOLE = Share(1, range(1), 0)


class Group(NamedTuple):
    """Ranks that see the same folder, and the leaders of all such groups."""

    members: tuple  # ascending; the first is the leader
    leaders: tuple  # ascending; the first is rank 0
    nodes: tuple  # the members of each node, a tuple each

    @property
    def leader(self):
        return self.members[0]

    @property
    def is_even(self):
        """Whether all nodes have as many members, so that each node's memory has all pieces."""
        return len({len(node) for node in self.nodes}) == 1

    @property
    def writers(self):
        """The rank that writes each piece. The pieces that a rank keeps lie one behind the other,
        and one rank of each node keeps them."""
        if not self.is_even:
            return self.members
        return tuple(rank for of_nodes in zip(*self.nodes) for rank in of_nodes)

    def share_of(self, rank, in_memory):
        """`in_memory`: the ranks of a node keep everything; else each what it writes."""
        written = self.writers.index(rank)
        count = len(self.nodes) if in_memory and self.is_even else 1
        first = written // count * count
        return Share(len(self.members), range(first, first + count), written)

    def node_of(self, rank):
        return next(node for node in self.nodes if rank in node)


class FolderGroup:
    """Finds out which ranks see the same folder: the first rank of each node creates a marker, and
    a rank that sees another node's marker shares the folder with it."""

    def __init__(self, folder, ranks):
        self._folder, self._ranks = folder, ranks
        self._group = None
        self._is_certain = False

    def get(self):
        """The first call is for all ranks together."""
        if self._group is None:
            self._group = self._determine()
        return self._group

    def forget_if_uncertain(self):
        """Lets the next get() look again if a node could not create its marker."""
        if not self._is_certain:
            self._group = None

    def _determine(self):
        ranks = self._ranks
        if ranks.world == 1:
            self._is_certain = True
            return Group((0,), (0,), ((0,),))
        marker = self._make_marker() if ranks.rank == ranks.first_of_node else ''
        markers, firsts = zip(*ranks.gather((marker, ranks.first_of_node)))
        self._is_certain = NO_MARKER not in markers
        # While a node cannot create its marker, its ranks count as a group of their own.
        leader = ranks.rank
        if markers[ranks.first_of_node] == NO_MARKER:
            leader = ranks.first_of_node
        else:
            for rank, name in enumerate(markers):
                if name and name != NO_MARKER and os.path.lexists(f'{self._folder}/{name}'):
                    leader = min(leader, rank)
        leaders = ranks.gather(leader)
        if marker and marker != NO_MARKER:
            with contextlib.suppress(OSError):
                os.unlink(f'{self._folder}/{marker}')
        members = tuple(rank for rank, of in enumerate(leaders) if of == leader)
        nodes = itertools.groupby(members, firsts.__getitem__)
        nodes = tuple(tuple(of_node) for _, of_node in nodes)
        return Group(members, tuple(sorted(set(leaders))), nodes)

    def _make_marker(self):
        name = f'.{files.make_nonce()}.sign'
        try:
            files.make_folders(self._folder)
            OutputFile(f'{self._folder}/{name}', is_new=True).close()
        except SnapshotFileError:
            return NO_MARKER  # the first save reports the reason
        return name
