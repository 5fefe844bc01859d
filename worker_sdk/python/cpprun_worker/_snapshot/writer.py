"""Saves the state in memory, and writes it to disk in a thread of its own. All ranks that see a
folder write one snapshot together; at the end it has its final name, or nothing of it is left.
The protocol: docs/reference/snapshots.md, "Commit".
"""

from __future__ import annotations

import enum
import hashlib
import os
import sys
import threading
import time
from typing import Any, Callable, NamedTuple

import torch

import cpprun_worker
from cpprun_worker import _environment

from . import commit, files, manifest
from .archive import Plan, crc32, crc32_combine
from .background import BackgroundThread, in_background
from .files import OutputFile
from .memory import Staged, label_of


class _Outcome(NamedTuple):
    """What a rank sends to the others after a stage of the protocol."""

    why: str = ''  # it has failed, if not empty
    value: Any = None


class SaveError(Exception):
    """This snapshot is not written; the text names the rank and the reason."""


class Place(enum.Enum):
    """Where a save goes."""

    NONE = 'left out'
    MEMORY = 'in memory only'
    DISK = 'in memory and on disk'


class Writer:
    """The training thread calls all methods, and copies the state into memory. A thread completes
    the save there, and a second one writes it to disk; meanwhile the next save may go into the
    other slot of the memory. While busy, these threads use the memory.
    """

    def __init__(self, folder, ranks, group, memory, keep, keep_every):
        self._folder, self._ranks, self._group, self._memory = folder, ranks, group, memory
        self._keep = keep, keep_every
        self._stager = BackgroundThread('cpprun-saver')
        self._disk = BackgroundThread('cpprun-writer')
        self._has_reported_busy = self._has_reported_stall = False
        self._asked = None, None  # the step and the answer that ask_ahead() has begun
        self._turn = 0  # counts the saves
        self._written_at = 0  # place of the slot that is written to disk
        self._last_error = ''
        self._is_staged = self._is_written = True  # the last one is in memory, on disk
        self.last_path = ''
        # Seconds of the last save: training waited, until it was in memory, until on disk.
        self.pause = self.staging = self.writing = 0.0

    def wait(self):
        """Waits for the running saves. True if the last one is in memory, and the last one that
        was to go to disk is there. False also if the file system does not answer: then the save
        continues."""
        self._stager.wait()  # it ends before the disk's thread begins
        path = self._disk.wait()
        if path and not self._has_reported_stall:
            self._has_reported_stall = True
            sys.stderr.write(
                f'cpprun: rank {self._ranks.rank}: the file system of {path} has not answered for '
                f'{files.ANSWER_TAKES} s, so the program does not wait for this snapshot; this '
                'message appears once\n'
            )
        return self._is_staged and self._is_written and not path

    def ask_ahead(self, step):
        """For all ranks: begins to ask for place_for(step), a step before."""
        self._asked = step, self._ranks.begin_highest(self._obstacles())

    def place_for(self, step, to_disk):
        """For all ranks: where the save of this step can go now. `to_disk`: it is to go there, as
        it is if the last write has failed; if it can't, rank 0 prints that, once."""
        (asked_step, answer), self._asked = self._asked, (None, None)
        found = answer() if answer else None  # also ends one that was for another step
        if asked_step != step:
            found = self._ranks.highest(self._obstacles())
        is_disk_busy, is_memory_busy, has_failed = found
        to_disk = to_disk or has_failed
        if to_disk and not is_disk_busy:
            return Place.DISK
        place = Place.NONE if is_memory_busy else Place.MEMORY
        if to_disk and self._ranks.is_first and not self._has_reported_busy:
            sys.stderr.write(
                f'cpprun: the snapshot of step {step} is {place.value}: the last one is still '
                'being written; this message appears once\n'
            )
        self._has_reported_busy = self._has_reported_busy or bool(to_disk)
        return place

    def _obstacles(self):
        """Of this rank: whether it can't save to disk now, whether it can't save in memory only,
        whether its last write has failed."""
        has_failed = not self._is_written
        if self._stager.is_busy:
            return True, True, has_failed
        is_writing = self._disk.is_busy  # the other thread has begun this before its own end
        written_at = self._written_at if is_writing else None
        can_keep = self._group.get().is_even and self._memory.can_keep(written_at)
        return is_writing, not can_keep, has_failed

    def prepare(self, capture: Callable):
        """Has the memory for the first save made by a thread, so that the save need not wait for
        it. For all ranks."""
        for thread in (self._stager, self._disk):
            thread.start()
        staged = self._capture(capture)
        try:
            arena = self._memory.prepare(staged)
        except OSError:
            return  # the first save reports the reason
        if arena is not None:
            work = (arena.make_ready, staged.gpu)
            threading.Thread(target=in_background, args=work, daemon=True).start()

    def _capture(self, capture):
        share = self._group.get().share_of(self._ranks.rank, self._memory.is_lasting)
        self._turn += 1
        return Staged(capture(), share, self._turn)

    def start(self, capture: Callable, step, to_disk):
        """Copies the state into memory and starts to save it. For all ranks, where place_for()
        permits it."""
        began = time.monotonic()
        self._disk.start()  # in this thread, since another one hands over to it
        if to_disk:
            self._group.forget_if_uncertain()
        group = self._group.get()
        staged = self._capture(capture)
        why = ''
        try:
            label = label_of(step, self._ranks, _environment.number('CPPRUN_ROUND', 0))
            self._memory.stage(staged, label, self._written_at if self._disk.is_busy else None)
        except (OSError, MemoryError, RuntimeError) as error:
            why = f'no memory for it: {error}'
        self.pause = time.monotonic() - began
        self._stager.run(self._stage, staged, step, group, why, to_disk)

    def _stage(self, staged, step, group, why, to_disk):
        began = time.monotonic()
        failed = ''
        try:
            own = self.outcome_of(self._memory.staged, staged) if not why else _Outcome(why)
            outcomes = self.agree(own, self._ranks.gather_of_stagers)
            _compare_samples(staged.sample, [outcome.value for outcome in outcomes])
            self._memory.complete(step)
        except Exception as error:  # any: training continues, and the next save tries again
            failed = str(error) or type(error).__name__
        self.staging = self.writing = time.monotonic() - began
        self._is_staged = not failed
        if failed:
            self._is_written = self._is_written and not to_disk
            self._report(step, failed)
        elif to_disk:
            self._written_at = staged.slot_at
            self._disk.run(self._write, staged, step, group, began)

    def _write(self, staged, step, group, began):
        failed = ''
        try:
            path = _FolderWriting(staged, step, group, self).write()
            self.last_path = path
            if self._ranks.rank == self._ranks.first_of_node:
                cpprun_worker.report_snapshot(step, path)
        except Exception as error:  # any: training continues, and the next save tries again
            failed = str(error) or type(error).__name__
        self._is_written = not failed
        self.writing = time.monotonic() - began
        self._report(step, failed)

    @staticmethod
    def outcome_of(call, *args):
        """Calls it. What it raises becomes an outcome: the other ranks wait for this one."""
        try:
            return _Outcome('', call(*args))
        except Exception as error:
            return _Outcome(str(error) or type(error).__name__)

    @staticmethod
    def agree(own, gather):
        """The outcomes of all ranks. SaveError: the first failure."""
        try:
            outcomes = gather(own)
        except Exception as error:  # what the process group raises differs
            raise SaveError(f"ranks can't agree on a snapshot: {error}") from error
        for rank, outcome in enumerate(outcomes):
            if outcome.why:
                raise SaveError(f'rank {rank}: {outcome.why}')
        return outcomes

    def _report(self, step, failed):
        """Only changes of the outcome: a full disk fails every save for a long time."""
        lasting = ' '.join(word for word in failed.split() if '.tmp' not in word)
        last, self._last_error = self._last_error, lasting
        if last == lasting or not self._ranks.is_first:
            return
        if failed:
            text = (
                f'the snapshot of step {step} was not written: {failed}; training continues, and '
                'each later save tries again'
            )
        else:
            text = f'snapshots are written again, from step {step} on'
        sys.stderr.write(f'cpprun: {text}\n')


class _FolderWriting:
    """One save. The ranks exchange the outcome of each stage, so that none waits for a failed one.
    """

    def __init__(self, staged, step, group, writer):
        self._staged, self._step, self._group, self._writer = staged, step, group, writer
        self._folder, self._ranks = writer._folder, writer._ranks
        self._is_leader = self._ranks.rank == group.leader
        self._plans = [Plan.of(file.storages) for file in staged.shared]
        self._outputs = []
        self._draft = None

    def write(self):
        """The path of the snapshot, once all folders have it. Exceptions: why it is not written."""
        try:
            return self._write()
        finally:
            with files.waiting_for(self._folder):  # close() sends what a file server has not got
                self._end()

    def _end(self):
        self._close_outputs()
        if self._draft and self._is_leader:
            self._draft.close()
        elif self._draft:
            self._draft.leave()

    def _stage(self, call, *args, is_mine=True):
        """Runs a stage of this rank. Returns the outcomes of all ranks, once they have ended it."""
        with files.waiting_for(self._folder):
            own = self._writer.outcome_of(call, *args) if is_mine else _Outcome()
        return self._writer.agree(own, self._ranks.gather_of_writers)

    def _write(self):
        outcomes = self._stage(self._create_draft, is_mine=self._is_leader)
        snapshot_id, nonce = outcomes[0].value[0], outcomes[self._group.leader].value[1]
        done = self._stage(self._write_shards, nonce)
        of_ranks = [outcome.value for outcome in done]
        if len({digest for _, _, digest, _ in of_ranks}) > 1:
            tensors = [outcome.value for outcome in self._stage(self._tensors)]
            self._stage(self._compare, tensors)
        self._stage(self._finish, snapshot_id, of_ranks, is_mine=self._is_leader)
        self._stage(self._request_commit, is_mine=self._ranks.is_first)
        outcomes = self._stage(self._publish, is_mine=self._is_leader)
        if self._is_leader:
            # Only now: the one to remove may have been the only one that all folders had.
            self._report_set_aside(commit.prune(self._folder, *self._writer._keep, self._step))
        return outcomes[self._group.leader].value

    def _create_draft(self):
        nonce = files.make_nonce()
        self._draft = commit.Draft(self._folder, self._step, nonce, is_new=True)
        for file, plan in zip(self._staged.shared, self._plans):
            self._outputs.append(OutputFile(self._draft.path_of(file.name), is_new=True))
            self._outputs[-1].reserve(plan.tail_at)
        return files.make_nonce() + files.make_nonce(), nonce

    def _write_shards(self, nonce):
        """Returns the crc32s of this rank's parts, what its own file has, a digest of the tensors
        that should be the same on all ranks, and what a sharded file has."""
        if not self._is_leader:
            self._draft = commit.Draft(self._folder, self._step, nonce, is_new=False)
            for file in self._staged.shared:
                self._outputs.append(OutputFile(self._draft.path_of(file.name), is_new=False))
        for file, plan, output in zip(self._staged.shared, self._plans, self._outputs):
            output.write_all(self._pieces(file, plan))
            output.sync()
        crcs = [{i: file.crcs[i] for i, _ in file.written()} for file in self._staged.shared]
        digest = hashlib.sha256(repr(self._tensors()).encode()).digest()
        return crcs, self._write_own_file(), digest, self._write_sharded()

    def _tensors(self):
        """(storages, paths) of each shared file."""
        return [(file.storages, file.paths) for file in self._staged.shared]

    def _compare(self, of_ranks):
        """SaveError: the members of this group don't have the same tensors."""
        leader, *others = self._group.members
        for member in others:
            if of_ranks[member] != of_ranks[leader]:
                raise SaveError(
                    f'ranks {leader} and {member} save different tensors: '
                    f'{_difference(of_ranks[leader], of_ranks[member])}'
                )

    def _pieces(self, file, plan):
        """(offset, bytes) of the parts that this rank writes, and of the headers of the storages
        that it has as a whole, so that neighbours are written together."""
        for i, part in file.written():
            place = plan.by_name[part.storage]
            if part.size == place.size:
                yield plan.header(part.storage, file.crcs[i])
            yield place.data_at + part.at, self._staged.part(part)

    def _write_sharded(self):
        """(bytes of each item, size, crc32) of this rank's file of a sharded state, or None."""
        file = self._staged.sharded
        if file is None:
            return None
        output = OutputFile(self._draft.path_of(file.name), is_new=True)
        self._outputs.append(output)
        done = file.write(output, self._staged.content)
        output.sync()
        return done

    def _write_own_file(self):
        """(bytes, crc32) of rank-<r>.pt."""
        file = self._staged.own
        plan = Plan.of(file.storages)
        output = OutputFile(self._draft.path_of(file.name), is_new=True)
        self._outputs.append(output)
        crc_of = {}
        for i, part in file.mine():
            crc_of[part.storage] = _joined(crc_of.get(part.storage), file.crcs[i], part.size)
        return _write_rest(output, plan, file, crc_of, self._pieces(file, plan))

    def _finish(self, snapshot_id, of_ranks):
        entries = []
        of_members = [of_ranks[member] for member in self._group.members]
        crcs_of = [of_ranks[writer][0] for writer in self._group.writers]  # by piece
        for number, file in enumerate(self._staged.shared):
            crc_of = {}
            for i, part in enumerate(file.parts):
                crc = crcs_of[part.piece][number][i]
                crc_of[part.storage] = _joined(crc_of.get(part.storage), crc, part.size)
            done = _write_rest(self._outputs[number], self._plans[number], file, crc_of)
            entries.append((file.name, *done))
        for member, (_, done, _, sharded_done) in zip(self._group.members, of_members):
            entries.append((manifest.rank_file(member), *done))
            if sharded_done:
                entries.append((manifest.sharded_file(member), *sharded_done[1:]))
        if self._staged.sharded:
            entries.append(self._write_metadata(of_ranks))
        self._draft.write_manifest(self._manifest(snapshot_id, entries))

    def _write_metadata(self, of_ranks):
        """Writes `.metadata` of torch.distributed.checkpoint: (name, bytes, crc32)."""
        from . import sharded

        lengths = {rank: value[3][0] for rank, value in enumerate(of_ranks)}
        content = sharded.metadata_bytes(self._staged.sharded.metadata, lengths)
        output = OutputFile(self._draft.path_of(manifest.SHARDED_METADATA), is_new=True)
        self._outputs.append(output)
        output.write_at(0, content)
        output.sync()
        return manifest.SHARDED_METADATA, len(content), crc32(content)

    def _manifest(self, snapshot_id, entries):
        others = sorted(set(range(self._ranks.world)) - set(self._group.members))
        elsewhere = [manifest.rank_file(rank) for rank in others]
        if self._staged.sharded:
            elsewhere += [manifest.sharded_file(rank) for rank in others]
        return {
            'id': snapshot_id,
            'step': self._step,
            'epoch': self._staged.epoch,
            'world_size': self._ranks.world,
            'run_id': os.environ.get('TORCHELASTIC_RUN_ID', ''),
            'round': _environment.number('CPPRUN_ROUND', 0),
            'torch': torch.__version__,
            'cpprun': '',
            'saved_at': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime()),
            'files': [
                {'name': name, 'bytes': size, 'crc32': f'{crc:08x}'} for name, size, crc in entries
            ],
            'elsewhere': elsewhere,
            'user': {},
        }

    def _request_commit(self):
        is_given, why = cpprun_worker._request_commit(self._step)
        if not is_given:
            raise SaveError(why)

    def _publish(self):
        self._close_outputs()
        return self._draft.publish()

    def _close_outputs(self):
        for output in self._outputs:
            output.close()

    def _report_set_aside(self, paths):
        if paths:
            sys.stderr.write(
                f'cpprun: the newest snapshot is of step {self._step} now; those of later steps '
                f'are set aside, and are not chosen: {", ".join(paths)}\n'
            )


def _compare_samples(sample, of_ranks):
    """SaveError: the ranks don't have the same model and optimizer."""
    for rank, own in enumerate(of_ranks):
        for path, first, value in zip(sample.paths, of_ranks[0], own):
            if value != first:
                raise SaveError(
                    f"ranks 0 and {rank} have different values in '{path}': train the model in "
                    "DistributedDataParallel, or pass what is each rank's own, such as a stage of "
                    "a pipeline and its optimizer, in per_rank={'stage': stage, ...}"
                )


def _joined(before, crc, size):
    return crc if before is None else crc32_combine(before, crc, size)


def _write_rest(output, plan, file, crc_of, pieces=()):
    """Writes `pieces`, and all but the storages that one rank writes, with their headers. Returns
    (bytes, crc32) of the file."""
    split = {part.storage for part in file.parts if part.at}
    rest, size, crc = plan.rest(file.pickle, crc_of, split)
    output.write_all([*pieces, *rest])
    output.sync()
    return size, crc


def _text(path):
    return '.'.join(map(str, path))


def _difference(one, other):
    for (storages, paths), (other_storages, other_paths) in zip(one, other):
        for (_, size), path, (_, other_size), other_path in zip(
            storages, paths, other_storages, other_paths
        ):
            if (size, path) != (other_size, other_path):
                return f"'{_text(path)}' of {size} bytes and '{_text(other_path)}' of {other_size}"
    return 'one has more than the other'
