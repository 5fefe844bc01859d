"""The shard of this rank in an arena: its parts of the shared files, its own file, and an index of
them. Together the shards of a node's ranks have everything that these ranks resume from.

A slot's content: parts and pickles, aligned to 64 bytes, big parts to blocks, a sample of the
model, the index as JSON, and its length (8 bytes). A slot names the folder that it belongs to. The
first folder of a process gets the arena that outlives it; Snapshots of other folders have memory
that ends with the process.
"""

from __future__ import annotations

import functools
import json
import struct
import threading
import weakref
from typing import NamedTuple

import torch

from . import state_pickle, stream_copy
from .archive import BIG, BLOCK, Plan, align_up, crc32, crc32_combine, plan_parts
from .arena import Arena, Label, Slots, arena_bytes
from .device_copy import DeviceCopies
from .manifest import MODEL, SHARDED_METADATA, is_sharded_file
from .ranks import WHOLE
from .sample import Sample
from .state_pickle import StateWriter, bytes_of
from .training_state import StagedFile

_ALIGNMENT = 64
_TAIL = 8  # bytes of a slot behind the index
_first_owner: list[str] = []
_lock = threading.Lock()


class ShardError(Exception):
    """A copy in memory can't be used."""


class ShardPart(NamedTuple):
    """A part of a file, and where it lies in the slot; -1: another rank has it."""

    storage: str
    at: int
    size: int
    piece: int
    in_slot: int


class Layout(NamedTuple):
    """Places of the parts of a file in a slot."""

    parts: tuple  # of ShardPart
    mine: tuple  # (index, part) of those that this rank keeps, in the order of the slot
    end: int
    as_json: str  # of the parts, for the index of the slot


@functools.lru_cache(maxsize=16)  # saves of one training have the same ones: a few per Snapshot
def _lay_out(storages, share, at):
    """`storages`: (name, bytes, is_leaders) of each. `at`: where the first one begins."""
    parts = []
    for part in plan_parts(storages, share.pieces):
        is_kept = part.piece in share.kept
        if is_kept:
            at = align_up(at, BLOCK if part.size >= BIG else _ALIGNMENT)
        parts.append(ShardPart(*part, at if is_kept else -1))
        at += part.size if is_kept else 0
    mine = tuple((i, part) for i, part in enumerate(parts) if part.in_slot >= 0)
    rows = [(part.storage, part.at, part.size, part.in_slot) for part in parts]
    return Layout(tuple(parts), mine, at, json.dumps(rows))


class Shard:
    """A file of a snapshot, with what this rank writes of it."""

    def __init__(self, staged, share):
        self.name, self.pickle = staged.name, staged.pickle
        self.sources = {each.name: each for each in staged.storages}  # until they are copied
        self.paths = [each.path for each in staged.storages]
        self._shapes = tuple([each[:3] for each in staged.storages])
        self._share = share
        self._layout = None
        self.pickle_in_slot = -1
        self.crcs = {}  # of the parts of this rank, by index

    def lay_out(self, at):
        """Assigns places from `at` on; returns where they end."""
        self._layout = _lay_out(self._shapes, self._share, at)
        self.pickle_in_slot = align_up(self._layout.end, _ALIGNMENT)
        return self.pickle_in_slot + len(self.pickle)

    @property
    def storages(self):
        """(name, bytes) of each."""
        return tuple([shape[:2] for shape in self._shapes])

    @property
    def parts(self):
        """Of all ranks. Requires lay_out(), as all that follows."""
        return self._layout.parts

    def mine(self):
        """(index, part) of those that this rank keeps, in the order of the slot."""
        return self._layout.mine

    def written(self):
        """(index, part) of those that this rank writes to disk."""
        return ((i, part) for i, part in self.mine() if part.piece == self._share.written)

    def copy(self, into, copies):
        """Copies this rank's parts and drops the tensors; training waits meanwhile, but not for
        `copies` from GPUs."""
        indexes, on_host = [], []
        for i, part in self.mine():
            source = self.sources[part.storage]
            if source.tensor.is_cuda:
                target = into[part.in_slot : part.in_slot + part.size]
                copies.add(target, bytes_of(source.tensor)[part.at : part.at + part.size])
            else:
                indexes.append(i)
                on_host.append((source, part.at, part.size, part.in_slot))
        crcs = stream_copy.copy(into, on_host)
        self.crcs = {i: crc for i, crc in zip(indexes, crcs) if crc is not None}
        self.sources = {}

    def index(self):
        """As JSON."""
        name = json.dumps(self.name)
        return f'[{name}, {self.pickle_in_slot}, {len(self.pickle)}, {self._layout.as_json}]'


class ShardedShard(Shard):
    """This rank's items of a sharded state: a list of tensors and bytes, the last one the metadata
    of the node's memory."""

    def __init__(self, captured):
        writer = StateWriter()
        contents = [item.content for item in captured.items]
        pickled = writer.write([*contents, captured.in_memory])
        super().__init__(StagedFile(captured.name, pickled, writer.storages), WHOLE)
        self.metadata = captured.metadata
        # Of each item that is written: its bytes, or the pickle of its file and its storage.
        self._items = [
            (_whole(each), None) if _is_known(each) else (_pickle_of(each), writer.name_of(each))
            for each, is_written in captured.items
            if is_written
        ]

    def write(self, output, content):
        """Writes the file of the items; `content`: the slot. (bytes of each, size, crc32)."""
        part_of = {part.storage: (i, part) for i, part in self.mine()}
        everything, lengths, at, whole = [], [], 0, 0
        for pickled, storage in self._items:
            if storage is None:
                pieces, size, crc = [(0, pickled)], len(pickled), crc32(pickled)
            else:
                i, part = part_of[storage]
                plan = Plan([(_ONLY, part.size)])
                pieces, size, crc = plan.rest(pickled, {_ONLY: self.crcs[i]})
                piece = content[part.in_slot : part.in_slot + part.size]
                pieces.append((plan.by_name[_ONLY].data_at, piece))
            everything += ((at + place, piece) for place, piece in pieces)
            lengths.append(size)
            whole, at = crc32_combine(whole, crc, size), at + size
        output.write_all(everything)
        return lengths, at, whole


_ONLY = '0'  # name of the storage in a file of one tensor


def _pickle_of(tensor):
    return StateWriter().write(tensor)


def _is_known(content):
    """Bytes, or a tensor without elements."""
    return isinstance(content, bytes) or not content.untyped_storage().nbytes()


def _whole(content):
    """The file of what is known."""
    if isinstance(content, bytes):
        return content
    pieces, size, _ = Plan([(_ONLY, 0)]).rest(_pickle_of(content), {_ONLY: 0})
    made = bytearray(size)
    for at, piece in pieces:
        made[at : at + len(piece)] = piece
    return bytes(made)


class Staged:
    """What this rank has of a snapshot, in a slot."""

    def __init__(self, contents, share, turn):
        """`turn`: counts the saves."""
        self.epoch = contents.epoch
        self.sample = Sample([file.storages for file in contents.shared], turn)
        self.shared = [Shard(file, share) for file in contents.shared]
        self.own = Shard(contents.own, WHOLE)
        self.sharded = ShardedShard(contents.sharded) if contents.sharded else None
        self.files = [*self.shared, *filter(None, [self.sharded]), self.own]
        self.fence, self.copies = contents.fence, None
        tensors = (each.tensor for file in self.files for each in file.sources.values())
        # A GPU that has a part of the state; None: all of it is in memory of the CPU.
        self.gpu = next((each.device for each in tensors if each.is_cuda), None)
        self.content, self.slot_at = memoryview(b''), 0  # of the slot in the arena
        self.sample_at = 0  # in the slot

    def lay_out(self, owner):
        """Returns (where the index begins, the index)."""
        at = 0
        for file in self.files:
            at = file.lay_out(at)
        index = ', '.join([json.dumps(owner), *(file.index() for file in self.files)])
        self.sample_at = at
        return at + self.sample.size, f'[{index}]'.encode()

    def part(self, part):
        return self.content[part.in_slot : part.in_slot + part.size]

    def checksum(self, crc32s):
        """crc32 of the slot; also sets those of the parts, which the files need: one pass.
        `crc32s` returns those of ranges (offset, bytes) of the slot that no copy has computed."""
        crc, done = 0, 0
        mine = [(file, i, part) for file in self.files for i, part in file.mine()]
        unknown = [(file, i, part) for file, i, part in mine if i not in file.crcs]
        ranges = [(part.in_slot, part.size) for _, _, part in unknown]
        for (file, i, _), known in zip(unknown, crc32s(ranges)):
            file.crcs[i] = known
        for file, i, part in mine:
            crc = crc32(self.content[done : part.in_slot], crc)
            # Below this size combining costs more than a second pass.
            if part.size >= BIG:
                crc = crc32_combine(crc, file.crcs[i], part.size)
            else:
                crc = crc32(self.part(part), crc)
            done = part.in_slot + part.size
        return crc32(self.content[done:], crc)


class Index:
    """The index of a slot. Raises ShardError for what makes no sense."""

    def __init__(self, content):
        self.content = content
        try:
            (length,) = struct.unpack('<Q', content[-_TAIL:])
            if length > len(content) - _TAIL:
                raise ValueError('its index is too long')
            index = content[len(content) - _TAIL - length : -_TAIL]
            self.owner, *files = json.loads(bytes(index))
            self.files = [(name, at, size, parts) for name, at, size, parts in files]
            for _, at, size, parts in self.files:
                self._check(at, size)
                for _storage, begin, part_size, place in parts:
                    self._check(place if place >= 0 else 0, part_size if place >= 0 else 0)
                    self._check(0, 0 if begin >= 0 and part_size >= 0 else -1)
        except (ValueError, TypeError, struct.error, RecursionError) as error:
            raise ShardError(f"the copy in memory can't be used: {error}") from None

    def _check(self, at, size):
        if not 0 <= at <= len(self.content) or not 0 <= size <= len(self.content) - at:
            raise ValueError('a part lies outside')


class Memory:
    """This rank's slots. One thread at a time."""

    def __init__(self, owner, is_used):
        """`owner` identifies the Snapshot: equal in all processes and on all nodes."""
        self._owner = owner
        self._is_used = is_used
        self._arena = None
        self._slots = None

    @property
    def is_lasting(self):
        """Whether the agent's arena is for this Snapshot."""
        with _lock:
            if not _first_owner:
                _first_owner.append(self._owner)
        return self._is_used and _first_owner[0] == self._owner

    def _open(self, size):
        self._slots = self._arena = None
        if self.is_lasting:
            self._arena = Arena.own(size)
        elif size:
            self._arena = Arena.of_process(size)
        self._slots = Slots(self._arena) if self._arena else None

    def prepare(self, staged):
        """Gets an arena that is large enough. Returns it if it is new; its pages are not there."""
        index_at, index = staged.lay_out(self._owner)
        return self._provide(index_at + len(index) + _TAIL)

    def _provide(self, size):
        """prepare() for a slot of this size."""
        size = arena_bytes(size)
        if self._arena is None or len(self._arena.view) < size:
            self._open(size)
            return self._arena
        return None

    def can_keep(self, written_at):
        """Whether a save that is not written to disk serves a restarted worker. `written_at`: the
        place of a slot that is being written to disk, which must stay meanwhile, or None."""
        if not self.is_lasting or self._arena is None or not self._arena.is_agents:
            return False
        newest = self._slots.newest()
        return written_at is None or newest is not None and newest.at == written_at

    def stage(self, staged, label, written_at=None):
        """Copies what this rank has into a slot. MemoryError: there is no room for it beside the
        slot that is being written to disk, if any."""
        index_at, index = staged.lay_out(self._owner)
        size = index_at + len(index) + _TAIL
        self._provide(size)
        at = self._slots.begin(label, size, written_at)
        content = self._arena.view[at : at + size]
        into = torch.frombuffer(content, dtype=torch.uint8)
        staged.copies = DeviceCopies(staged.fence)
        for file in staged.files:
            file.copy(into, staged.copies)
            content[file.pickle_in_slot : file.pickle_in_slot + len(file.pickle)] = file.pickle
        staged.sample.copy(into[staged.sample_at :], staged.copies)
        content[index_at : index_at + len(index)] = index
        content[-_TAIL:] = struct.pack('<Q', len(index))
        staged.copies.start()
        staged.content, staged.slot_at = content, at

    def staged(self, staged):
        """Sets the checksum of the slot, once it is filled. Returns those of the sample."""
        staged.copies.wait()
        if staged.gpu is not None:  # for the saves to come
            self._arena.pin(staged.gpu)
        at = staged.slot_at
        self._slots.staged(
            staged.checksum(
                lambda ranges: self._arena.crc32s([(at + each, size) for each, size in ranges])
            )
        )
        return staged.sample.checksums(staged.content[staged.sample_at :])

    def complete(self, step):
        """Requires: all ranks have staged the step."""
        self._slots.complete(step)

    def found(self, rank, world):
        """Labels of the slots of this rank, from a world of as many ranks."""
        if not self._is_used:
            return []
        if self._arena is None:
            self._open(0)
        labels = []
        for slot in self._slots.all() if self._slots else []:
            if (slot.label.rank, slot.label.world) == (rank, world) and self._is_own(slot):
                labels.append(slot.label)
        return labels

    def _is_own(self, slot):
        try:
            return Index(self._arena.view[slot.at : slot.at + slot.size]).owner == self._owner
        except ShardError:
            return False

    def load(self, label, group, ranks):
        """{file name: state, or StateInMemory}, from the slots of this node's ranks. Each rank
        verifies its own."""
        indexes, members = [], group.node_of(label.rank)
        for member in members:
            arena, slot = self._slot_of(label._replace(rank=member), ranks)
            content = arena.view[slot.at : slot.at + slot.size]
            index = Index(content)
            if index.owner != self._owner or indexes and len(index.files) != len(indexes[0].files):
                raise ShardError("the copy in memory can't be used: it is another Snapshot's")
            if member == label.rank and arena.crc32s([(slot.at, slot.size)]) != [slot.crc]:
                raise ShardError("the copy in memory can't be used: its checksum differs")
            indexes.append(index)
        loaded = {}
        for i, (name, *_) in enumerate(indexes[0].files[:-1]):
            if not is_sharded_file(name):  # the leader's pickle counts
                loaded[name] = StateInMemory(indexes, i) if name == MODEL else _read(indexes, i)
        mine = indexes[members.index(label.rank)]
        loaded[mine.files[-1][0]] = _read([mine], -1)
        if len(mine.files) > 1 and is_sharded_file(mine.files[-2][0]):
            by_rank = dict(zip(members, indexes))
            loaded[SHARDED_METADATA] = _sharded_reader(by_rank, label.rank)
        return loaded

    def _slot_of(self, label, ranks):
        """(arena, slot), in a mapping to read: what a program changes there stays its own."""
        is_here = self._arena is not None and not self._arena.is_agents
        arena = self._arena if is_here else _arena_of(ranks, label.rank)
        for slot in Slots(arena).all():
            if slot.label == label:
                return arena, slot
        raise ShardError(f'the copy in memory of rank {label.rank} is gone')


class StateInMemory:
    """The state of a file whose tensors lie in the arenas, so that load_state_dict() copies each
    once, from there into the program's own. The arenas change with later saves."""

    def __init__(self, indexes, number):
        self._indexes, self._number = indexes, number
        self._views = []
        self._lent = _read(indexes, number, self._views)

    def lend_to(self, load):
        """Calls load(state). If it has kept a tensor of the state, calls it again with a copy."""
        lent, self._lent = self._lent, None
        load(lent)
        del lent
        if any(view() is not None for view in self._views):
            load(self.copy())

    def copy(self):
        return _read(self._indexes, self._number)


def _sharded_reader(indexes, rank):
    @functools.lru_cache(maxsize=None)
    def items_of(member):
        if member not in indexes:
            raise ShardError(f'the memory of rank {member} is on another node')
        # torch.distributed.checkpoint copies the items into the program's tensors.
        return _read([indexes[member]], -2, [])

    from . import sharded

    return sharded.MemoryReader(items_of(rank)[-1], items_of)


def _arena_of(ranks, member):
    local = ranks.local_rank_of(member)
    if local is None:
        raise ShardError(f'rank {member} is on another node')
    try:
        return Arena.of(local)
    except OSError as error:
        raise ShardError(f"the memory of rank {member} can't be used: {error}") from None


class _Range(NamedTuple):
    """A range of a storage, from `at` on, and where it lies in the content of a slot."""

    content: memoryview
    at: int
    size: int
    place: int


def _append(ranges, content, at, size, place):
    """A rank of several nodes keeps several parts of a storage, which mostly are neighbours."""
    last = ranges[-1] if ranges else None
    if last and last.content is content and (at - last.at, place - last.place) == (last.size,) * 2:
        ranges[-1] = last._replace(size=last.size + size)
    else:
        ranges.append(_Range(content, at, size, place))


def _read(indexes, number, views=None):
    """The state of a file. With `views` the tensors lie in the slots, where they are in one piece;
    `views` gets a weak reference to each piece, which dies with its tensors. Else they are copies.
    """
    of_storage = {}
    for index in indexes:
        for storage, at, size, place in index.files[number][3]:
            pieces = of_storage.setdefault(storage, [0, []])
            pieces[0] = max(pieces[0], at + size)
            if place >= 0 and size:
                _append(pieces[1], index.content, at, size, place)

    def storage_of(name):
        size, ranges = of_storage.pop(name)
        if sum(each.size for each in ranges) != size:
            raise ShardError(f"the copy in memory can't be used: storage {name} is not all there")
        pieces = [each.content[each.place : each.place + each.size] for each in ranges]
        if views is not None and len(pieces) == 1:
            (piece,) = pieces
            views.append(weakref.ref(piece))
            return torch.frombuffer(piece, dtype=torch.uint8)
        made = torch.empty(size, dtype=torch.uint8)
        for each, piece in zip(ranges, pieces):
            made[each.at : each.at + each.size] = torch.frombuffer(piece, dtype=torch.uint8)
        return made

    _, at, size, _ = indexes[0].files[number]
    try:
        return state_pickle.read(bytes(indexes[0].content[at : at + size]), storage_of)
    except ShardError:
        raise
    except Exception as error:  # any, since the bytes may be damaged
        raise ShardError(f"the copy in memory can't be read: {error}") from error


def label_of(step, ranks, round_number):
    return Label(step, round_number, ranks.rank, ranks.world)
