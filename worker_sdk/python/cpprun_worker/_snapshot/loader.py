"""Chooses what to resume from: the newest snapshot that all ranks can load. C++ counterparts:
worker_sdk/cpprun/snapshot/snapshot_loader.hpp, resume_choice.hpp.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

import torch

import cpprun_worker

from . import manifest
from .archive import crc32
from .files import SnapshotFileError, errors_of, is_same_path, snapshot_name
from .memory import ShardError

MEMORY, CHOSEN, FOLDER = range(3)  # in the order of preference
NAMED_MOST = 8  # damaged ones in one message; the rest is counted


class Candidate(NamedTuple):
    where: int
    step: int
    id: str
    why: str  # not usable, if not empty
    name: str
    path: str = ''  # none in memory


def common(of_ranks):
    """(those that all ranks have, the best first; those that some rank can't use)."""
    keys = [{each[:3] for each in own if not each.why} for own in of_ranks]
    on_all = set.intersection(*keys)
    loadable = [each for each in of_ranks[0] if not each.why and each[:3] in on_all]
    damaged = {}
    for rank, own in enumerate(of_ranks):
        for each in own:
            if each.why and each.step not in damaged:
                prefix = f'rank {rank}: ' if len(of_ranks) > 1 else ''
                damaged[each.step] = each._replace(why=prefix + each.why)
    on_disk = max((each.step for each in loadable if each.where != MEMORY), default=-1)
    loadable = [each for each in loadable if each.where != MEMORY or each.step >= on_disk]

    def by_merit(each):
        return (each.where, -each.step)

    return sorted(loadable, key=by_merit), sorted(damaged.values(), key=by_merit)


class Loader:
    def __init__(self, folder, ranks, group, memory, state):
        self._folder, self._ranks, self._group, self._memory = folder, ranks, group, memory
        self._state = state

    def load(self):
        """(candidate, {file name: state}), or None if there is no snapshot. For all ranks."""
        loadable, damaged = common(self._ranks.gather(self._own()))
        failed = set()  # ids
        for each in loadable:
            if each.id in failed:
                continue
            loaded, why = None, ''
            try:
                loaded = self._load(each)
            except (ShardError, SnapshotFileError) as error:
                why = str(error)
            if self._ranks.any(why):
                whys = enumerate(self._ranks.gather(why))
                why = next(f'rank {rank}: {text}' for rank, text in whys if text)
            if not why:
                damaged = [other for other in damaged if other.step >= each.step]
                self._report_damaged(damaged, each.name)
                self._report_to_agent(each)
                return each, loaded
            failed.add(each.id)
            damaged.append(each._replace(why=why))
        self._report_damaged(damaged, '')
        self._report_to_agent(None)
        return None

    def _own(self):
        found = []
        for label in self._labels():
            if self._is_bad(label):
                continue
            name, save = f'step {label.step} in memory', f'{label.round}/{label.world}'
            found.append(Candidate(MEMORY, label.step, save, '', name))
        chosen = self._launchers_choice()
        if chosen:
            try:
                found.append(_of_folder(manifest.look_at(chosen), CHOSEN))
            except SnapshotFileError:
                pass  # the folder's catalog has the reason
        try:
            complete, incomplete = manifest.scan(self._folder)
        except SnapshotFileError as error:
            return [*found, Candidate(FOLDER, -1, '', str(error), self._folder)]
        found += [_of_folder(each, FOLDER) for each in complete]
        for each in incomplete:
            name = snapshot_name(each.step)
            found.append(Candidate(FOLDER, each.step, '', each.why, name, each.path))
        return found

    def _labels(self):
        """Of this rank's slots in memory that can be resumed from."""
        if not self._group.get().is_even:
            return []
        return self._memory.found(self._ranks.rank, self._ranks.world)

    def _is_bad(self, label):
        """A user has marked a snapshot as bad; what its round has saved later is bad too."""
        run_id = os.environ.get('TORCHELASTIC_RUN_ID', '')
        return any(
            (bad_run, bad_round) == (run_id, label.round) and bad_step <= label.step
            for bad_run, bad_round, bad_step in manifest.marked_bad(self._folder)
        )

    def _launchers_choice(self):
        """None unless the launcher looks at this folder."""
        looks_at = os.environ.get('CPPRUN_SNAPSHOT_DIR')
        is_its = not looks_at or is_same_path(looks_at, self._folder)
        return cpprun_worker.resume_path() if is_its else None

    def _load(self, candidate):
        group = self._group.get()
        if candidate.where == MEMORY:
            for label in self._labels():
                is_same = f'{label.round}/{label.world}' == candidate.id
                if label.step == candidate.step and is_same:
                    return self._load_memory(label, group)
            raise ShardError('the copy in memory is gone')
        return self._load_folder(candidate.path, group.members)

    def _load_memory(self, label, group):
        loaded = self._memory.load(label, group, self._ranks)
        if len(group.nodes) > 1 and manifest.SHARDED_METADATA in loaded:
            lacking = self._state.lacks(loaded[manifest.SHARDED_METADATA])
            if lacking:
                raise ShardError(f'the memory of this node lacks {lacking}')
        return loaded

    def _load_folder(self, path, members):
        """All ranks of a folder read the shared files; each checks a part of them."""
        found = manifest.look_at(path)
        own = manifest.rank_file(self._ranks.rank)
        turn, number, loaded = members.index(self._ranks.rank), 0, {}
        for entry in found.manifest['files']:
            name = entry['name']
            is_shared = not name.startswith('rank-')
            if not is_shared and name != own:
                continue
            if not is_shared or number % len(members) == turn:
                verify_file(f'{path}/{name}', int(entry['crc32'], 16))
            number += is_shared
            if name == manifest.SHARDED_METADATA:
                from torch.distributed.checkpoint import FileSystemReader

                loaded[name] = FileSystemReader(path)
            elif not manifest.is_sharded_file(name):
                loaded[name] = _read(f'{path}/{name}')
        return loaded

    def _report_to_agent(self, loaded):
        """fell_back: the launcher chose a folder, and training resumed from another snapshot or
        from none. A copy of the chosen one (same id) is no fallback."""
        chosen = self._launchers_choice()
        fell_back = bool(chosen) and (loaded is None or loaded.where == FOLDER)
        if fell_back and loaded is not None:
            try:
                fell_back = manifest.look_at(chosen).manifest['id'] != loaded.id
            except SnapshotFileError:
                pass
        step, path = (-1, '') if loaded is None else (loaded.step, loaded.path)
        cpprun_worker.report_resumed(step, path, fell_back)

    def _report_damaged(self, damaged, instead):
        if not damaged or not self._ranks.is_first:
            return
        # Complete ones that could not be loaded come first.
        named = sorted(damaged, key=lambda each: not each.id)[:NAMED_MOST]
        text = '; '.join(f"{each.name} can't be used ({each.why})" for each in named)
        if len(named) < len(damaged):
            text += f'; nor can {len(damaged) - len(named)} others'
        count = 'one' if len(damaged) == 1 else len(damaged)
        then = f'fell back {count} to {instead}' if instead else 'training begins anew'
        then = then if instead else f'there is no other: {then}'
        sys.stderr.write(f'cpprun: {text}; {then}\n')


def _of_folder(found, where):
    name = snapshot_name(found.step)
    return Candidate(where, found.step, found.manifest['id'], '', name, found.path)


def verify_file(path, expected):
    """SnapshotFileError: it can't be read, or has another crc32."""
    crc = 0
    with errors_of('read', path), open(path, 'rb', buffering=0) as file:
        buffer = memoryview(bytearray(4 << 20))
        while size := file.readinto(buffer):
            crc = crc32(buffer[:size], crc)
    if crc != expected:
        why = f"{path} is not what was written (its crc32 differs from the manifest's)"
        raise SnapshotFileError(why)


def _read(path):
    try:
        return torch.load(path, map_location='cpu', weights_only=True)
    except Exception as error:  # any, since the bytes may be damaged
        raise SnapshotFileError(f"{path} can't be loaded: {error}") from error
