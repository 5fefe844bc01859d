"""Snapshots for the Trainer of Hugging Face transformers.

    from cpprun_worker.transformers import SnapshotCallback

    snapshots = SnapshotCallback(every=100)
    trainer = Trainer(..., callbacks=[snapshots])
    trainer.train(resume_from_checkpoint=snapshots.resume(trainer))

docs/how-to/snapshots-transformers.md describes it. Importing this module imports transformers.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import tempfile
from typing import Any

import torch
import transformers
from transformers.trainer_callback import ExportableState

from ._snapshot.late_saves import LateSaves
from ._snapshot.manifest import OTHERS
from ._snapshot.snapshot import Snapshot
from ._snapshot.training_state import joined

_STATE = 'trainer_state'


class SnapshotCallback(transformers.TrainerCallback):
    """Saves the whole training, on all ranks; the Trainer resumes by resume().

    every: optimizer steps, or '30s', '5min', 'auto'; disk_every: as in Snapshot.maybe_save().
    folder, options: those of Snapshot (keep, keep_every, extra, per_rank, in_memory, refuse_nan).
    """

    def __init__(
        self,
        every: int | str = 'auto',
        folder: str | os.PathLike[str] | None = None,
        *,
        disk_every: int | str | None = None,
        extra: dict[str, Any] | None = None,
        per_rank: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self._every, self._disk_every = every, disk_every
        self._folder, self._options = folder, options
        self._extra = {} if extra is None else extra
        self._per_rank = {} if per_rank is None else per_rank
        self._trainer: transformers.Trainer | None = None
        self._found: Any = None
        self._is_over = False  # the last step is done
        self._checkpoint: tempfile.TemporaryDirectory[str] | None = None
        self.snapshot: Snapshot | None = None

    def resume(self, trainer: transformers.Trainer) -> str | None:
        """What train(resume_from_checkpoint=...) takes: None if there is no snapshot, else a
        temporary folder from which the Trainer reads its progress. The model and all else are
        loaded when the training begins."""
        if trainer.is_deepspeed_enabled or trainer.is_fsdp_enabled:
            raise ValueError(
                'SnapshotCallback serves DistributedDataParallel, not DeepSpeed or FSDP'
            )
        self._trainer = trainer
        self.snapshot = Snapshot(self._folder, **self._options)
        self._found = self.snapshot._find()
        if self._found is None:
            return None
        self._checkpoint = tempfile.TemporaryDirectory(prefix='cpprun-resume-')
        path = self._checkpoint.name
        state = self._found[1].get(OTHERS, {}).get(_STATE)
        if state is None:
            raise ValueError(f'{self._found[0].name} is not of a Trainer')
        with open(f'{path}/trainer_state.json', 'w', encoding='utf-8') as file:
            file.write(state['json'])
        # The model comes from the snapshot, once DistributedDataParallel has it.
        trainer._load_from_checkpoint = lambda *_, **__: None
        return path

    def on_train_begin(self, args, state, control, **_: Any) -> None:
        if self.snapshot is None or self._trainer is None:
            raise RuntimeError(
                'call train(resume_from_checkpoint=snapshots.resume(trainer)), so that the '
                'training resumes'
            )
        trainer = self._trainer
        objects = {'optimizer': trainer.optimizer, 'scheduler': trainer.lr_scheduler}
        if getattr(trainer.accelerator, 'scaler', None) is not None:
            objects['scaler'] = trainer.accelerator.scaler
        extra = joined(self._extra, {_STATE: _State(trainer)})
        self.snapshot._track(trainer.model_wrapped, objects, extra, self._per_rank)
        self._saves = LateSaves(self.snapshot, self._every, self._disk_every)
        if self._found is not None:
            self.snapshot._apply(self._found)
            self._found = None
            self._write_rng(args)

    def _write_rng(self, args):
        """The Trainer loads it when it has skipped the batches of before."""
        name = 'rng_state.pth' if args.world_size == 1 else f'rng_state_{args.process_index}.pth'
        torch.save(_generators(args), f'{self._checkpoint.name}/{name}')

    def on_step_begin(self, args, state, control, **_: Any) -> None:
        self._clean_up()

    def _clean_up(self):
        if self._checkpoint is not None:
            self._checkpoint.cleanup()
            self._checkpoint = None

    def on_step_end(self, args, state, control, **_: Any) -> None:
        is_followed = control.should_evaluate or state.epoch == int(state.epoch)
        self._saves.on_step(state.global_step, not is_followed)

    def on_epoch_end(self, args, state, control, **_: Any) -> None:
        # on_train_end() is too late: the Trainer has drawn random numbers, or loaded another model.
        self._is_over = state.global_step >= state.max_steps or control.should_training_stop
        if self._is_over and not control.should_evaluate:
            self._saves.finish(state.global_step)

    def on_evaluate(self, args, state, control, **_: Any) -> None:
        if self._is_over:
            self._saves.finish(state.global_step)

    def on_train_end(self, args, state, control, **_: Any) -> None:
        self._clean_up()
        self._is_over = False
        if not args.load_best_model_at_end:
            self._saves.finish(state.global_step)  # resumed from memory without a step to train
        self.snapshot.wait()


def _generators(args):
    """The random generators, as the Trainer's own checkpoints have them."""
    import numpy

    states = {
        'python': random.getstate(),
        'numpy': numpy.random.get_state(),
        'cpu': torch.get_rng_state(),
    }
    if torch.cuda.is_available():
        is_one = args.world_size == 1
        states['cuda'] = torch.cuda.get_rng_state() if is_one else torch.cuda.get_rng_state_all()
    return states


class _State:
    """The Trainer's progress, as in trainer_state.json."""

    def __init__(self, trainer):
        self._trainer = trainer

    def state_dict(self):
        state = dataclasses.asdict(self._trainer.state)
        state['stateful_callbacks'] = self._callbacks()
        return {'json': json.dumps(state)}

    def _callbacks(self):
        handlers = [*self._trainer.callback_handler.callbacks, self._trainer.control]
        states: dict[str, Any] = {}
        for each in handlers:
            if isinstance(each, ExportableState):
                states.setdefault(type(each).__name__, []).append(each.state())
        return {name: of if len(of) > 1 else of[0] for name, of in states.items()}

    def load_state_dict(self, state):
        pass  # the Trainer has read it
