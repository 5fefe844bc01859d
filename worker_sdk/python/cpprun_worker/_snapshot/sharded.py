"""State that is sharded over ranks (FSDP, DTensor), in the format of
torch.distributed.checkpoint (DCP): `.metadata`, and one `__<rank>_0.distcp` of each rank. DCP's
planners decide which rank writes and reads what; so it is resumed with another number of ranks
too, and DCP opens it without cpprun. The memory of a node has everything that its ranks need to
resume with the same layout.

The training thread plans once per layout. A rank's items lie in the arena as tensors; the writing
thread makes a file of torch.save of each, one behind the other. Importing DCP takes as long as
importing torch, so this module is imported only for a sharded state.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NamedTuple

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import state_dict as dcp_state
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.default_planner import DefaultLoadPlanner, DefaultSavePlanner
from torch.distributed.checkpoint.filesystem import _StorageInfo
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.planner import LoadItemType
from torch.distributed.checkpoint.planner_helpers import WriteItemType
from torch.distributed.checkpoint.stateful import Stateful
from torch.futures import Future

from .manifest import sharded_file
from .state_pickle import StateError


class ModelAndOptimizers:
    """Both as DCP names them: optimizer states by the name of the parameter."""

    def __init__(self, model, optimizers):
        self._model = model
        self._optimizers = tuple(optimizers)

    def state_dict(self):
        model, optimizer = dcp_state.get_state_dict(self._model, self._optimizers)
        return {'model': model, 'optimizer': optimizer} if self._optimizers else {'model': model}

    def load_state_dict(self, state):
        dcp_state.set_state_dict(
            self._model,
            self._optimizers,
            model_state_dict=state['model'],
            optim_state_dict=state.get('optimizer', {}),
        )


class DictOfParts:
    """The dict that a program gives to dcp.save() and dcp.load(): objects with state_dict, and
    tensors and plain values."""

    def __init__(self, parts):
        self._parts = parts

    def state_dict(self):
        return {
            name: part.state_dict() if isinstance(part, Stateful) else part
            for name, part in self._parts.items()
        }

    def state_to_load(self):
        """Like get_state_dict(), gives each optimizer the states that its first step makes: DCP
        loads only what is there."""
        for part in self._parts.values():
            if isinstance(part, torch.optim.Optimizer):
                dcp_state._init_optim_state(part)
        return self.state_dict()

    def load_state_dict(self, state):
        for name, part in self._parts.items():
            if isinstance(part, Stateful):
                part.load_state_dict(state[name])
            else:
                self._parts[name] = state[name]


class Item(NamedTuple):
    """What a rank keeps in memory: a tensor, or the bytes of another object."""

    content: Any  # torch.Tensor or bytes
    is_written: bool  # to disk, by this rank


class Captured(NamedTuple):
    """The metadata are pickles of dcp's Metadata, with storage_data = {index: (rank, number)}."""

    name: str  # of this rank's file
    items: list
    metadata: bytes  # of the files; number: of the item among those that the rank writes
    in_memory: bytes  # of the memory of this node; number: of the item


class _Layout(NamedTuple):
    """What this rank keeps and writes: it follows from the local plans of all ranks."""

    local_plan: Any  # dcp's SavePlan
    kept: list  # of (dcp's WriteItem, whether this rank writes it)
    metadata: bytes
    in_memory: bytes


class Sharded:
    """An object whose state_dict DCP can save. For all ranks together."""

    def __init__(self, saved, ranks):
        self._saved, self._ranks = saved, ranks
        self._state_to_load = getattr(saved, 'state_to_load', saved.state_dict)
        self._layout = _Layout(None, [], b'', b'')

    def capture(self, in_memory):
        """`in_memory`: the ranks of a node keep everything they need, not only what they write."""
        state = self._saved.state_dict()
        planner = DefaultSavePlanner(dedup_save_to_lowest_rank=True)
        planner.set_up_planner(state, is_coordinator=self._ranks.is_first)
        local = planner.create_local_plan()
        if self._ranks.any(local != self._layout.local_plan):
            self._layout = self._plan(planner, local)
        items = []
        for item, is_written in self._layout.kept:
            if is_written or in_memory:
                content = planner.resolve_data(item)
                is_bytes = item.type == WriteItemType.BYTE_IO
                content = content.getvalue() if is_bytes else _compact(content, item.index.fqn)
                items.append(Item(content, is_written))
        layout = self._layout
        return Captured(sharded_file(self._ranks.rank), items, layout.metadata, layout.in_memory)

    def _plan(self, planner, local):
        """Each rank makes the plan of all. Of what several ranks have, the lowest writes it, and
        the lowest of each node keeps it."""
        local_plans = self._ranks.gather(local)
        plans, metadata = planner.create_global_plan(local_plans)
        kept_of, seen = {}, set()
        for rank in self._ranks.of_node:
            kept_of[rank] = [item for item in local_plans[rank].items if item.index not in seen]
            seen.update(item.index for item in kept_of[rank])
        own = {item.index for item in plans[self._ranks.rank].items}
        kept = [(item, item.index in own) for item in kept_of[self._ranks.rank]]
        pickles = []
        for places in (enumerate(plan.items for plan in plans), kept_of.items()):
            metadata.storage_data = {
                item.index: (rank, number)
                for rank, items in places
                for number, item in enumerate(items)
            }
            pickles.append(pickle.dumps(metadata))
        return _Layout(local, kept, *pickles)

    def lacks(self, reader):
        """Name of something that this rank needs and a MemoryReader has not, or None. What does not
        fit at all is left to load()."""
        planner, metadata = _load_planner(), reader.read_metadata()
        try:
            planner.set_up_planner(self._state_to_load(), metadata)
            needed = planner.create_local_plan().items
        except (RuntimeError, ValueError):
            return None
        indexes = (item.storage_index for item in needed)
        return next((each.fqn for each in indexes if each not in metadata.storage_data), None)

    def local_state(self):
        """The tensors of this rank, by name."""
        return _local(self._saved.state_dict())

    def load(self, reader):
        """Raises what DCP raises, on all ranks; never its CheckpointException, a BaseException."""
        state, planner = self._state_to_load(), _load_planner()
        try:
            group = self._ranks.training_group
            dcp.load(state, storage_reader=reader, planner=planner, process_group=group)
        except CheckpointException as error:
            rank = min(error.failures)
            raise ValueError(f'rank {rank}: {error.failures[rank][0]}') from error
        left = self._left_out(state, planner)
        if left:
            raise ValueError(f"the program's state has no {min(left)!r}, which the snapshot has")
        self._saved.load_state_dict(state)

    def _left_out(self, state, planner):
        """Names of the saved tensors that no rank has loaded, of the parts that the program has:
        DCP leaves them out without an error."""
        loaded, paths = planner.state_dict, planner.metadata.planner_data
        left = {
            name
            for name, saved in planner.metadata.state_dict_metadata.items()
            if isinstance(saved, TensorStorageMetadata)
            if name not in loaded and paths and paths[name][0] in state
        }
        if not self._ranks.any(left):
            return set()
        return set.intersection(*self._ranks.gather(left))


def _load_planner():
    """Flattening would leave out a ShardedTensor of which this rank has no shard; DCP of torch 2.11
    would then take the files for those of torch 2.3."""
    return DefaultLoadPlanner(flatten_sharded_tensors=False)


def _local(value):
    if isinstance(value, dict):
        return {key: _local(item) for key, item in value.items()}
    if hasattr(value, 'local_shards'):
        return [shard.tensor for shard in value.local_shards()]
    return value.to_local() if hasattr(value, 'to_local') else value


def _compact(tensor, name):
    """A tensor whose storage is not larger than it."""
    tensor = tensor.detach()
    if tensor.numel() and not tensor.untyped_storage().nbytes():  # a copy of it would crash
        raise StateError(f"'{name}': its memory is freed, so it has no content")
    is_whole = tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return tensor if is_whole and tensor.is_contiguous() else tensor.contiguous().clone()


def metadata_bytes(metadata, lengths_of):
    """The content of `.metadata`. `lengths_of`: {rank: bytes of each item}."""
    made = pickle.loads(metadata)
    places = {}
    for rank, lengths in lengths_of.items():
        at = 0
        for number, length in enumerate(lengths):
            places[rank, number] = _StorageInfo(sharded_file(rank), at, length)
            at += length
    made.storage_data = {index: places[item] for index, item in made.storage_data.items()}
    return pickle.dumps(made)


class MemoryReader(dcp.StorageReader):
    """Reads the items of a snapshot from the arenas of a node. `items_of(rank)`: its items."""

    def __init__(self, metadata, items_of):
        self._metadata = pickle.loads(metadata)
        self._items_of = items_of

    def reset(self, checkpoint_id=None):
        pass

    def read_metadata(self, *args, **kwargs):
        return self._metadata

    def set_up_storage_reader(self, metadata, is_coordinator, *args, **kwargs):
        pass

    def prepare_local_plan(self, plan):
        return plan

    def prepare_global_plan(self, plans):
        return plans

    def read_data(self, plan, planner):
        for request in plan.items:
            rank, number = self._metadata.storage_data[request.storage_index]
            content = self._items_of(rank)[number]
            if request.type == LoadItemType.BYTE_IO:
                planner.load_bytes(request, io.BytesIO(content))
                continue
            for dimension, (at, size) in enumerate(zip(request.storage_offsets, request.lengths)):
                content = content.narrow(dimension, at, size)
            target = planner.resolve_tensor(request).detach()
            target.copy_(content)
            planner.commit_tensor(request, target)
        done: Future = Future()
        done.set_result(None)
        return done

    @classmethod
    def validate_checkpoint_id(cls, checkpoint_id):
        return False
