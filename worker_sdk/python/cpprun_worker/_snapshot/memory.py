"""The shard of this rank in an arena: its parts of the shared files, its own file, and an index of
them. Together the shards of a folder's ranks are the whole snapshot.

A slot's content: parts and pickles, each aligned to 64 bytes, the index as JSON, and its length (8
bytes). A slot names the folder that it belongs to. The first folder of a process gets the arena
that outlives it; Snapshots of other folders have memory that ends with the process.
"""

from __future__ import annotations

import json
import struct
import threading
from typing import NamedTuple

import torch

from . import state_pickle
from .archive import BIG, align_up, crc32, crc32_combine, plan_parts
from .arena import Arena, Label, Slots, arena_bytes

_ALIGNMENT = 64
_first_owner: list[str] = []
_lock = threading.Lock()


class ShardError(Exception):
    """A copy in memory can't be used."""


class ShardPart(NamedTuple):
    """A part of a file, and where it lies in the slot; -1: another rank has it."""

    storage: str
    at: int
    size: int
    writer: int
    in_slot: int


class Shard:
    """A file of a snapshot, with what this rank writes of it."""

    def __init__(self, staged, writers, place):
        self.name, self.pickle = staged.name, staged.pickle
        self.storages = [(each.name, each.size) for each in staged.storages]
        self.paths = [each.path for each in staged.storages]
        self.tensors = {each.name: each.tensor for each in staged.storages}
        sources = [(each.name, each.size, each.is_leaders) for each in staged.storages]
        self.parts = [ShardPart(*part, -1) for part in plan_parts(sources, writers)]
        self._place = place
        self.pickle_in_slot = -1
        self.crcs = {}  # of the parts of this rank, by index

    def lay_out(self, at):
        """Assigns places from `at` on; returns where they end."""
        for i, part in enumerate(self.parts):
            if part.writer == self._place:
                at = align_up(at, _ALIGNMENT)
                self.parts[i] = part._replace(in_slot=at)
                at += part.size
        self.pickle_in_slot = align_up(at, _ALIGNMENT)
        return self.pickle_in_slot + len(self.pickle)

    def mine(self):
        """(index, part) of those that this rank writes, in the order of the slot."""
        return ((i, part) for i, part in enumerate(self.parts) if part.in_slot >= 0)

    def copy(self, into):
        """Copies this rank's parts and drops the tensors; training waits meanwhile."""
        sources = {}
        for _, part in self.mine():
            if part.storage not in sources:
                sources[part.storage] = state_pickle.bytes_of(self.tensors[part.storage])
            source = sources[part.storage][part.at : part.at + part.size]
            into[part.in_slot : part.in_slot + part.size].copy_(source)
        self.tensors = {}

    def index(self):
        parts = [[part.storage, part.at, part.size, part.in_slot] for part in self.parts]
        return [self.name, self.pickle_in_slot, len(self.pickle), parts]


class Staged:
    """What this rank has of a snapshot, in a slot."""

    def __init__(self, contents, group, rank):
        place = group.members.index(rank)
        self.epoch = contents.epoch
        self.shared = [Shard(file, len(group.members), place) for file in contents.shared]
        self.own = Shard(contents.own, 1, 0)
        self.files = [*self.shared, self.own]
        self.content = memoryview(b'')

    def lay_out(self, owner):
        """Returns (where the index begins, the index)."""
        at = 0
        for file in self.files:
            at = file.lay_out(at)
        index = json.dumps([owner, *(file.index() for file in self.files)]).encode()
        return at, index

    def part(self, part):
        return self.content[part.in_slot : part.in_slot + part.size]

    def checksum(self):
        """crc32 of the slot; also sets those of the parts, which the files need: one pass."""
        crc, done = 0, 0
        for file in self.files:
            for i, part in file.mine():
                crc = crc32(self.content[done : part.in_slot], crc)
                content = self.part(part)
                own = file.crcs[i] = crc32(content)
                # Below this size combining costs more than a second pass.
                is_big = part.size >= BIG
                crc = crc32_combine(crc, own, part.size) if is_big else crc32(content, crc)
                done = part.in_slot + part.size
        return crc32(self.content[done:], crc)


class Index:
    """The index of a slot. Raises ShardError for what makes no sense."""

    def __init__(self, content):
        self.content = content
        try:
            (length,) = struct.unpack('<Q', content[-8:])
            if length > len(content) - 8:
                raise ValueError('its index is too long')
            self.owner, *files = json.loads(bytes(content[len(content) - 8 - length : -8]))
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

    def _open(self, size):
        with _lock:
            if not _first_owner:
                _first_owner.append(self._owner)
        self._slots = self._arena = None
        is_lasting = self._is_used and _first_owner[0] == self._owner
        if is_lasting:
            self._arena = Arena.own(size)
        elif size:
            self._arena = Arena.of_process(size)
        self._slots = Slots(self._arena) if self._arena else None

    def prepare(self, staged):
        """Gets an arena that is large enough. Returns it if it is new; its pages are not there."""
        index_at, index = staged.lay_out(self._owner)
        size = arena_bytes(index_at + len(index) + 8)
        if self._arena is None or len(self._arena.view) < size:
            self._open(size)
            return self._arena
        return None

    def stage(self, staged, label):
        """Copies what this rank has into a slot."""
        self.prepare(staged)
        index_at, index = staged.lay_out(self._owner)
        size = index_at + len(index) + 8
        at = self._slots.begin(label, size)
        content = self._arena.view[at : at + size]
        into = torch.frombuffer(content, dtype=torch.uint8)
        for file in staged.files:
            file.copy(into)
            content[file.pickle_in_slot : file.pickle_in_slot + len(file.pickle)] = file.pickle
        content[index_at : index_at + len(index)] = index
        content[-8:] = struct.pack('<Q', len(index))
        staged.content = content

    def staged(self, staged):
        """The slot is filled: sets its checksum."""
        self._slots.staged(staged.checksum())

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
        """{file name: state}, from the slots of all members of the group."""
        own = _slot_of(self._arena, label)
        if crc32(self._arena.view[own.at : own.at + own.size]) != own.crc:
            raise ShardError("the copy in memory can't be used: its checksum differs")
        indexes = []
        for member in group.members:
            arena = self._arena if member == label.rank else _peer(ranks, member)
            slot = _slot_of(arena, label._replace(rank=member))
            index = Index(arena.view[slot.at : slot.at + slot.size])
            if index.owner != self._owner or indexes and len(index.files) != len(indexes[0].files):
                raise ShardError("the copy in memory can't be used: it is another Snapshot's")
            indexes.append(index)
        loaded = {}
        for i, (name, *_) in enumerate(indexes[0].files[:-1]):
            loaded[name] = _read(indexes, i)  # the leader's pickle counts
        mine = indexes[group.members.index(label.rank)]
        loaded[mine.files[-1][0]] = _read([mine], -1)
        return loaded


def _peer(ranks, member):
    local = ranks.local_rank_of(member)
    if local is None:
        raise ShardError(f'rank {member} is on another node')
    try:
        return Arena.of(local)
    except OSError as error:
        raise ShardError(f"the memory of rank {member} can't be used: {error}") from None


def _slot_of(arena, label):
    for slot in Slots(arena).all() if arena else []:
        if slot.label == label:
            return slot
    raise ShardError(f'the copy in memory of rank {label.rank} is gone')


def _read(indexes, number):
    """The state of a file. Copies: what is loaded must not change with the slot."""
    of_storage = {}
    for index in indexes:
        for storage, at, size, place in index.files[number][3]:
            pieces = of_storage.setdefault(storage, [0, []])
            pieces[0] = max(pieces[0], at + size)
            if place >= 0:
                pieces[1].append((at, index.content[place : place + size]))

    def storage_of(name):
        size, pieces = of_storage[name]
        made = torch.empty(size, dtype=torch.uint8)
        if sum(len(piece) for _, piece in pieces) != size:
            raise ShardError(f"the copy in memory can't be used: storage {name} is not all there")
        for at, piece in pieces:
            if piece:
                made[at : at + len(piece)] = torch.frombuffer(piece, dtype=torch.uint8)
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
