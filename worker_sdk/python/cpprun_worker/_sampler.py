"""DistributedSampler: gives each rank its part of a data set, and resumes within an epoch.

    sampler = cpprun_worker.DistributedSampler(dataset, seed=1)
    loader = DataLoader(dataset, batch_size=64, sampler=sampler)
    state = cpprun_worker.Snapshot(model=model, optimizer=optimizer, extra={'sampler': sampler})

The counterpart of torch.utils.data.DistributedSampler, with its order bit for bit, and of
cpprun/data/distributed_sampler.hpp.
"""

from __future__ import annotations

import sys
import warnings
import weakref
from typing import Any, Callable, Iterator, Mapping, Sized, SupportsIndex

import torch
import torch.distributed as dist
from torch.utils.data import BatchSampler, Sampler
from torch.utils.data.dataloader import _BaseDataLoaderIter

from . import _environment
from ._arguments import COUNTS, whole_number


class DistributedSampler(Sampler):
    """Rank r gets positions r, r + num_replicas, ... of the epoch's order. If the size of the data
    set is not a multiple of num_replicas, the first samples of the order pad it (drop_last: its
    last samples are dropped).

    dataset: anything with a length. num_replicas, rank: default: those of the default group, before
    init_process_group() WORLD_SIZE and RANK. seed: of the order, together with the epoch; the same
    on all ranks, as is the state. Threads: any, one at a time.
    """

    def __init__(
        self,
        dataset: Sized,
        num_replicas: SupportsIndex | None = None,
        rank: SupportsIndex | None = None,
        shuffle: bool = True,
        seed: SupportsIndex = 0,
        drop_last: bool = False,
    ) -> None:
        self.dataset = dataset
        self.shuffle, self.drop_last = bool(shuffle), bool(drop_last)
        self.seed = whole_number('seed', seed)
        self.epoch = 0
        self._size = len(dataset)
        own_count, own_rank = _own_replica()
        self._set_replica(
            own_count if num_replicas is None else num_replicas, own_rank if rank is None else rank
        )
        self._has_marks = False
        self._begin(0)

    def set_epoch(self, epoch: SupportsIndex) -> None:
        """Starts another epoch, with another order if `shuffle`. With the current epoch it does
        nothing unless that epoch has been exhausted, so a loop may call it after
        load_state_dict()."""
        epoch = whole_number('epoch', epoch)
        if epoch != self.epoch or self._is_exhausted:
            self.epoch = epoch
            self._begin(0)

    def next(self, batch_size: SupportsIndex) -> list[int] | None:
        """A list of the next at most batch_size indices into the data set; None at the end of the
        epoch. The call after that starts another pass, in the same order unless set_epoch() was
        called."""
        batch_size = whole_number('batch_size', batch_size, COUNTS)
        if self._is_exhausted:
            self._begin_pass()
        return self._take(batch_size)

    def __iter__(self) -> Iterator[int]:
        """A pass over this rank's indices. It starts where load_state_dict() has put it if nothing
        was taken since, else at the start of the epoch."""
        return _Pass(self)

    def __len__(self) -> int:
        """Samples per rank in a whole epoch."""
        return self._per_replica(self._size)

    def mark_consumed(self, samples_of_this_rank: SupportsIndex) -> None:
        """The training has used so many more samples. For what is ahead of it, and no DataLoader of
        torch with its own BatchSampler: from the first call on, the state counts these samples
        instead of those that the sampler gave."""
        marked = self._marked + whole_number('samples_of_this_rank', samples_of_this_rank)
        if not 0 <= marked <= self._given:
            raise ValueError(
                f'mark_consumed() has counted {marked} samples, but the sampler gave'
                f' {self._given} in this pass: it counts samples of this rank, each once'
            )
        self._marked, self._has_marks = marked, True

    def state_dict(self) -> dict[str, Any]:
        """The position after the samples that were given, or that mark_consumed() has counted; the
        same on all ranks. A DataLoader with num_workers takes samples early: those that it has not
        given to the training count as not used."""
        return self._state_after(self._used())

    def _state_after(self, rounds: int) -> dict[str, Any]:
        """Of so many samples of this rank in this pass."""
        rest = self._size - self._before
        used = rest if rounds >= -(-rest // self.num_replicas) else rounds * self.num_replicas
        return {
            'seed': self.seed,
            'epoch': self.epoch,
            'consumed': self._before + used,  # of all ranks together, without padding
            'size': self._size,
            'shuffle': self.shuffle,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues after the consumed samples, at any world size: divides the rest of the epoch's
        order among the ranks, so that each sample of the epoch is used exactly once (with
        drop_last: at most once)."""
        if state['size'] != self._size:
            raise ValueError(
                f"the sampler's state is of a data set of {state['size']} samples, this one has"
                f' {self._size}'
            )
        if state['shuffle'] != self.shuffle:
            raise ValueError(
                f"the sampler's state has shuffle={state['shuffle']}: make this sampler with the"
                ' same'
            )
        if not 0 <= state['consumed'] <= self._size:
            raise ValueError(
                f"by the sampler's state {state['consumed']} of {self._size} samples were"
                ' consumed'
            )
        self.seed, self.epoch = state['seed'], state['epoch']
        self._begin(state['consumed'])

    def _when_continued(self, call: Callable[[], None]) -> None:
        """For Snapshot: calls it when __iter__() begins to continue within the epoch, after what a
        DataLoader does before."""
        if self._before > 0:
            self._continued = call

    def bind(self, num_replicas: SupportsIndex, rank: SupportsIndex) -> None:
        """From now on this process takes the samples of `rank` of `num_replicas`, after those that
        all ranks have consumed so far. All ranks call it at the same position; elastic.steps() and
        share_state() do it for the samplers that they are given."""
        if (num_replicas, rank) != (self.num_replicas, self.rank):
            now = self.state_dict()  # of the ranks before
            self._set_replica(num_replicas, rank)
            self.load_state_dict(now)

    def _set_replica(self, num_replicas: SupportsIndex, rank: SupportsIndex) -> None:
        count = whole_number('num_replicas', num_replicas, COUNTS)
        self.rank = whole_number('rank', rank, range(count))
        self.num_replicas = count

    def _begin(self, first_position: int) -> None:
        self._before = first_position  # positions of the order that were consumed before this pass
        self._given = 0  # of this rank's samples in this pass
        self._marked = 0  # of these, those that mark_consumed() has counted
        self._is_exhausted = False
        self._indices: list[int] | None = None  # of this rank in this pass, once they are needed
        self._continued: Callable[[], None] | None = None
        self._loader: weakref.ref[_BaseDataLoaderIter] | None = None  # of this pass, if it is ahead

    def _begin_pass(self) -> None:
        if self.shuffle and self._is_exhausted:
            warnings.warn(
                'DistributedSampler begins another pass in the same order as the last one: call'
                ' sampler.set_epoch(epoch) before each pass'
            )
        if self._given > 0 or self._is_exhausted:
            self._begin(0)
        continued, self._continued = self._continued, None
        if continued is not None:
            continued()

    def _take(self, count: int) -> list[int] | None:
        if self._indices is None:
            self._indices = self._own_indices()
        taken = self._indices[self._given : self._given + count]
        self._given += len(taken)
        self._is_exhausted = not taken
        return taken or None

    def _used(self) -> int:
        """Samples of this rank that the training has used in this pass."""
        if self._has_marks:
            return self._marked
        loader = None if self._loader is None else self._loader()
        batches = None if loader is None else loader._index_sampler
        if not isinstance(batches, BatchSampler) or batches.sampler is not self:
            return self._given
        used = min(self._given, loader._num_yielded * batches.batch_size)
        is_dropped = self._is_exhausted and batches.drop_last
        return self._given if is_dropped and self._given - used < batches.batch_size else used

    def _per_replica(self, length: int) -> int:
        count = self.num_replicas
        return length // count if self.drop_last else -(-length // count)

    def _own_indices(self) -> list[int]:
        if self.shuffle:
            generator = torch.Generator().manual_seed(self.seed + self.epoch)
            rest = torch.randperm(self._size, generator=generator)[self._before :]
        else:
            rest = torch.arange(self._before, self._size)
        length = len(rest)
        positions = torch.arange(self._per_replica(length)) * self.num_replicas + self.rank
        return rest[positions % max(1, length)].tolist()


class _Pass(Iterator[int]):
    """Begins with the first sample. torchdata's StatefulDataLoader saves the state of an iterator
    when it takes samples, and passes it on when the training gets them. So this state counts all
    samples that the sampler gave."""

    def __init__(self, sampler: DistributedSampler) -> None:
        self._sampler = sampler
        self._is_begun = False
        self._end: dict[str, Any] | None = None  # the state, once no sample is left

    def __next__(self) -> int:
        sampler = self._sampler
        if self._end is not None:
            raise StopIteration
        if not self._is_begun:
            self._is_begun = True
            sampler._begin_pass()
            sampler._loader = _loader_of_pass()
        taken = sampler._take(1)
        if taken is None:
            self._end = self.state_dict()
            raise StopIteration
        return taken[0]

    def state_dict(self) -> dict[str, Any]:
        sampler = self._sampler
        return self._end or sampler._state_after(sampler._given)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._sampler.load_state_dict(state)


def _loader_of_pass() -> weakref.ref[_BaseDataLoaderIter] | None:
    """The DataLoader's iterator that calls the __iter__() that calls this, if it has processes,
    which take samples before the training does. torch passes it to no sampler."""
    frame = sys._getframe(2)
    for _ in range(4):  # BatchSampler, and the iterator's method that asks it for a batch
        if frame is None:
            break
        caller = frame.f_locals.get('self')
        if isinstance(caller, _BaseDataLoaderIter):
            return weakref.ref(caller) if caller._num_workers > 0 else None
        frame = frame.f_back
    return None


def _own_replica() -> tuple[int, int]:
    if dist.is_available() and dist.is_initialized():
        return dist.get_world_size(), dist.get_rank()
    return _environment.number('WORLD_SIZE', 1), _environment.number('RANK', 0)
