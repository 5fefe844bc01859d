"""Snapshot: everything needed to continue a training exactly, on disk and in memory.

    state = cpprun_worker.Snapshot(model=model, optimizer=optimizer)
    step = state.resume()                   # at the start, on all ranks; 0: there is none
    while step < last:
        train()
        step += 1
        state.maybe_save(step, every=100)   # on all ranks

docs/snapshots-python.md describes it; the C++ counterpart is cpprun/snapshot/snapshot.hpp.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from typing import Any, MutableMapping

import cpprun_worker

from .._arguments import COUNTS, STEPS, whole_number
from .._program_end import end_program
from .files import is_same_path, snapshot_name
from .loader import MEMORY, Candidate, Loader
from .memory import Memory
from .ranks import FolderGroup, Ranks
from .schedule import Schedule, checked_every
from .stop_requests import StopRequests
from .training_state import TrainingState, joined
from .writer import Place, Writer

# From so many steps between saves on the ranks agree on a save one step ahead, so that training
# does not wait for them. A save that ends within the last step leaves the next one out.
_AHEAD = 8

# By folder: identifies the Snapshot of this process that saved there last.
_last_savers: dict[str, object] = {}


class Snapshot:
    """Saves and resumes the state of a training. Works under cpprun, under torchrun and alone.

    All ranks make it, after init_process_group(), with the same arguments, and call its methods at
    the same points of the program, from one thread.

    model, optimizer, scheduler, scaler: the same on all ranks (DistributedDataParallel). sampler
        (such as a StatefulDataLoader) is each rank's own. All have state_dict, load_state_dict.
        optimizer and scheduler may be lists of such objects, in the same order in each run.
    extra: more that is the same on all ranks, by name: objects with state_dict, random generators,
        or plain values (numbers, texts, lists, dicts, tensors), which resume() sets in this dict.
    per_rank: the same for what is each rank's own.
    sharded: in place of model and optimizer, an object whose state_dict (dicts with DTensors) is
        saved in the format of torch.distributed.checkpoint, or the dict that dcp.save() takes. A
        model that FSDP has sharded needs neither: it and its optimizer are saved in that format
        anyway.
    folder: default CPPRUN_SNAPSHOT_DIR (from --snapshot-dir), else "snapshots". Two Snapshots in
        one program need two folders.
    keep, keep_every: how many of the newest remain, and each whose step is a multiple.
    rng: saves the random generators of Python, numpy and torch, of each rank.
    in_memory: a restarted worker may resume from memory of its node.
    refuse_nan: does not save a model or optimizer that has a NaN or an infinity.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        model: Any = None,
        optimizer: Any = None,
        scheduler: Any = None,
        sampler: Any = None,
        scaler: Any = None,
        extra: MutableMapping[str, Any] | None = None,
        per_rank: MutableMapping[str, Any] | None = None,
        sharded: Any = None,
        keep: int = 3,
        keep_every: int = 0,
        rng: bool = True,
        in_memory: bool = True,
        refuse_nan: bool = False,
    ) -> None:
        keep = whole_number('keep', keep, COUNTS)
        keep_every = whole_number('keep_every', keep_every, STEPS)
        if folder is not None and not isinstance(folder, (str, bytes, os.PathLike)):
            kind = type(folder).__name__
            raise TypeError(f'the first argument of a Snapshot is its folder, not a {kind}')
        for name, given in (('extra', extra), ('per_rank', per_rank)):
            if given is not None and not isinstance(given, MutableMapping):
                raise TypeError(f'{name} is a {type(given).__name__}; wanted is a dict')
        launchers = os.environ.get('CPPRUN_SNAPSHOT_DIR')
        folder = os.fsdecode(folder or launchers or 'snapshots')
        # A node that takes the place of another finds its memory, also if its folder has another
        # path. All nodes have one --snapshot-dir.
        owner = '--snapshot-dir' if launchers and is_same_path(folder, launchers) else folder
        self._folder = os.path.abspath(os.path.expanduser(folder))
        others = {**_named('optimizer', optimizer), **_named('scheduler', scheduler)}
        others |= {} if scaler is None else {'scaler': scaler}
        own = {} if sampler is None else {'sampler': sampler}
        if per_rank is not None:
            own = joined(per_rank, own) if own else per_rank
        extra = {} if extra is None else extra
        self._ranks = Ranks()
        self._has_rng = rng
        self._track(model, others, extra, own, sharded)
        self._group = FolderGroup(self._folder, self._ranks)
        self._memory = Memory(owner, in_memory)
        self._schedule = Schedule(self._ranks, owner)
        self._stops = StopRequests(self._ranks)
        self._refuses_nan = refuse_nan
        self._has_reported_nan = False
        self._is_prepared = False
        self._source = 'none'
        self._resumed_name = ''  # of the snapshot on disk that was resumed
        self._id, self._has_saved = object(), False
        self._writer = Writer(
            self._folder, self._ranks, self._group, self._memory, keep, keep_every
        )

    def resume(self) -> int:
        """Loads the newest snapshot that all ranks can load and whose checksums are right: from the
        memory of this node if that is at least as new as those on disk, else the launcher's choice,
        else the newest in the folder. Returns its step; 0: there is none.

        ValueError: the snapshot does not fit the objects, which may be partly loaded then.
        """
        return self._apply(self._find())

    def _track(self, model, others, extra, own, sharded=None):
        """For adapters too, whose objects are made after the Snapshot."""
        state = TrainingState(model, others, extra, own, self._has_rng, sharded, self._ranks)
        self._state = state

    def _find(self) -> tuple[Candidate, dict[str, Any]] | None:
        """What resume() loads, or None."""
        self._writer.wait()
        loader = Loader(self._folder, self._ranks, self._group, self._memory, self._state)
        return loader.load()

    def _apply(self, found: tuple[Candidate, dict[str, Any]] | None) -> int:
        """The rest of resume()."""
        if found is None:
            self._source, self._resumed_name = 'none', ''
            self._schedule.begin()
            return 0
        candidate, loaded = found
        try:
            seconds, missing, lacks_own = self._state.apply(loaded, self._ranks.rank)
        except ValueError as error:
            place = candidate.path or candidate.name
            raise ValueError(f'{place} does not fit the program: {error}') from error
        self._schedule.resume(candidate.step, seconds)
        self._stops.restart()
        self._source = 'memory' if candidate.where == MEMORY else 'disk'
        self._resumed_name = '' if self._source == 'memory' else snapshot_name(candidate.step)
        if missing and self._ranks.is_first:
            names = ', '.join(missing)
            text = f'{candidate.name} has nothing of: {names}; it begins as it is'
            sys.stderr.write(f'cpprun: {text}\n')
        self._report_new_ranks(candidate.name, lacks_own)
        return candidate.step

    def _report_new_ranks(self, name, lacks_own):
        if not self._ranks.any(lacks_own):
            return
        lacking = [rank for rank, is_so in enumerate(self._ranks.gather(lacks_own)) if is_so]
        if self._ranks.is_first:
            sys.stderr.write(
                f"cpprun: {name} has nothing of rank {', '.join(map(str, lacking))}'s own: its "
                'random generators are derived from the step\n'
            )

    @property
    def source(self) -> str:
        """What resume() has loaded: 'memory', 'disk' or 'none'."""
        return self._source

    def save(self, step: int) -> bool:
        """Saves the state after `step` optimizer steps and waits until it is on disk. False: it is
        not, rank 0 has printed the reason to stderr, and training may continue."""
        with _training_waits():
            self._writer.wait()
            is_begun = self._start_save(step, to_disk=True) is Place.DISK
            return is_begun and self._writer.wait()

    def _save_last(self, step):
        """For adapters, at the end of a training: save(), unless this step is on disk."""
        self.wait()
        last_saved = os.path.basename(self._writer.last_path) or self._resumed_name
        if self._ranks.any(last_saved != snapshot_name(step)):
            self.save(step)

    def save_async(self, step: int) -> bool:
        """Copies the state into memory and returns; a thread writes it to disk, unless the last
        one is still being written: then it stays in memory, where that serves a restarted worker.
        False: it is left out, because memory does not serve, or the save before has not ended
        there, or it has a NaN that refuse_nan refuses."""
        return self._save_due(step, None)

    def _save_due(self, step, disk_every):
        with _training_waits():
            to_disk = self._schedule.is_for_disk(step, disk_every)
            return self._start_save(step, to_disk) is not Place.NONE

    def _start_save(self, step, to_disk):
        step = whole_number('step', step, STEPS)
        self._check_folder()
        place = self._writer.place_for(step, to_disk)
        if place is Place.NONE or self._is_refused(step):
            return Place.NONE
        seconds = self._schedule.begin_save(step, place is Place.DISK)
        with _without_collections():
            self._writer.start(lambda: self._capture(step, seconds), step, place is Place.DISK)
        self._has_saved, _last_savers[self._folder] = True, self._id
        return place

    def _check_folder(self):
        """A Snapshot may take over the folder of one that is no longer used, as after an in-process
        restart; two that are both used would replace each other's snapshots."""
        if self._has_saved and _last_savers[self._folder] is not self._id:
            raise ValueError(
                f'another Snapshot of this program saves into {self._folder} too, and each '
                "replaces the other's snapshots: give one Snapshot all objects (extra={...}), or "
                'each a folder of its own'
            )

    def _capture(self, step, seconds):
        return self._state.capture(step, seconds, self._ranks.rank, self._memory.is_lasting)

    def maybe_save(
        self, step: int, every: int | str = 'auto', disk_every: int | str | None = None
    ) -> bool:
        """save_async() if it is time: each `every` steps, or with '30s', '5min' as often, or with
        'auto' at the interval that loses the least time, by what a save costs here and how often
        this job rolls back to a snapshot. Rank 0's clock decides for all. A program that does not
        call it at each step saves at the first call from the due step on.

        disk_every: steps, or a time as '10min'. Of these saves only the first one, and each that
        comes so much later than the last one on disk, are written to disk; the others are for
        workers that restart on this node. Where memory does not serve them, they are left out.

        Reports the step to the agent, as a heartbeat for which no next one is due, if the program
        sends no heartbeats itself.

        If the agent asks the job to stop (SIGTERM to cpprun, a preemption), this saves, and ends
        the program by SystemExit with STOPPED_RESUMABLE, or with 1 if the state is not on disk. Not
        in a script that has called enable_graceful_stop()."""
        every = checked_every('every', every)
        disk_every = checked_every('disk_every', disk_every)
        writer, step = self._writer, whole_number('step', step, STEPS)
        agent = cpprun_worker._own_agent()
        if agent:
            agent.report_progress(step)
        if self._stops.is_agreed(step):
            end_program(cpprun_worker.STOPPED_RESUMABLE if self.save(step) else 1)
        busy = writer.writing if disk_every is None else writer.staging
        if self._schedule.is_due(step, every, writer.pause, busy):
            return self._save_due(step, disk_every)
        if not self._is_prepared:
            self._is_prepared = True
            writer.prepare(lambda: self._capture(step, 0.0))
        if isinstance(every, int) and every >= _AHEAD and (step + 1) % every == 0:
            writer.ask_ahead(step + 1)
        return False

    def wait(self) -> bool:
        """Waits for the running saves: call it before destroy_process_group(). True if the last
        one has not failed, and is on disk if it was to go there. Until the next maybe_save() a stop
        request ends the program by SIGTERM."""
        self._stops.pause()
        with _training_waits():
            return self._writer.wait()

    @property
    def last_path(self) -> str:
        """Folder of the last snapshot that this process has saved; '' if there is none."""
        return self._writer.last_path

    def _is_refused(self, step):
        if not self._refuses_nan:
            return False
        found = [each for each in self._ranks.gather(self._state.bad_tensor()) if each]
        if found and self._ranks.is_first and not self._has_reported_nan:
            sys.stderr.write(
                f"cpprun: the snapshot of step {step} is left out: '{found[0]}' has a NaN or an "
                'infinity; this message appears once\n'
            )
        self._has_reported_nan = self._has_reported_nan or bool(found)
        return bool(found)


@contextlib.contextmanager
def _training_waits():
    """The agent counts the time of the block as saving, for goodput."""
    began = time.monotonic_ns()
    try:
        yield
    finally:
        agent = cpprun_worker._own_agent()
        if agent:
            agent.add_saved(time.monotonic_ns() - began)


@contextlib.contextmanager
def _without_collections():
    """A save makes some objects for each tensor, none of them in cycles. With a big model Python's
    garbage collector would look at all objects of the program for them, several times."""
    is_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_enabled:
            gc.enable()


def _named(argument, value):
    """{name in the file: object}. The first one of a list has the name of a single one."""
    if value is None:
        return {}
    if not isinstance(value, (list, tuple)):
        return {argument: value}
    return {f'{argument}[{i}]' if i else argument: each for i, each in enumerate(value)}
