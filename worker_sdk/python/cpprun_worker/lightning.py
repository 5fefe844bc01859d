"""Snapshots for Lightning: a callback that saves and resumes the whole training.

    from cpprun_worker.lightning import SnapshotCallback

    trainer = Trainer(..., callbacks=[..., SnapshotCallback(every=100)])   # the last one
    trainer.fit(module)

docs/how-to/snapshots-lightning.md describes it. Importing this module imports Lightning.
"""

from __future__ import annotations

import os
import warnings
from typing import Any

try:
    import lightning.pytorch as pl
except ImportError:  # the older name of the same package
    import pytorch_lightning as pl  # type: ignore[import-not-found,no-redef]

from ._snapshot.generators import rng_state, set_rng_state
from ._snapshot.late_saves import LateSaves
from ._snapshot.snapshot import Snapshot
from ._snapshot.training_state import joined


class SnapshotCallback(pl.Callback):
    """Resumes when fit() begins, and saves during it, on all ranks.

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
        self._step = 0
        self._resumed_rng: dict[str, Any] | None = None
        self._epoch_rng: dict[str, Any] = {}
        self.snapshot: Snapshot | None = None

    def on_fit_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.ckpt_path is not None:
            raise ValueError(
                'SnapshotCallback resumes by itself: load the weights of another checkpoint into '
                'the module, and call fit() without ckpt_path'
            )
        self._epoch_rng = rng_state()
        self.snapshot = Snapshot(self._folder, **self._options)
        extra, own = self._parts(trainer)
        self.snapshot._track(trainer.strategy.model, _objects_of(trainer), extra, own)
        self._saves = LateSaves(self.snapshot, self._every, self._disk_every)
        self._step = self.snapshot.resume()
        if self._step:
            self._resumed_rng = rng_state()

    def _parts(self, trainer):
        """(what is the same on all ranks, what is each rank's own)"""
        parts = {'loops': _Loops(trainer), 'callbacks': _Callbacks(trainer, self)}
        own = {'epoch_generators': _EpochGenerators(self)}
        if getattr(trainer, 'datamodule', None) is not None:
            own['datamodule'] = trainer.datamodule
        return joined(self._extra, parts), joined(self._per_rank, own)

    def on_train_epoch_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.fit_loop.epoch_progress.current.ready > 1:  # else the loader is iterated already
            self._epoch_rng = rng_state()

    def on_train_start(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        for loader in trainer.fit_loop._combined_loader.flattened:
            if hasattr(loader, 'load_state_dict'):
                raise ValueError(
                    f'SnapshotCallback skips batches by itself, which a {type(loader).__name__} '
                    "with a state of its own does not repeat: use torch's DataLoader"
                )
        if self._resumed_rng is None:
            return
        resumed_rng, self._resumed_rng = self._resumed_rng, None
        if not _is_between_epochs(trainer.fit_loop):
            self._go_to_batch(trainer)
            # Lightning warns that results are unreliable, since it does not know of the line above.
            warnings.filterwarnings('ignore', "You're resuming from a checkpoint that ended before")
        set_rng_state(resumed_rng)

    def _go_to_batch(self, trainer):
        """Iterates the loaders anew, as at the begin of the epoch: Lightning has begun them before
        it passes the epoch to their samplers, and does not skip the batches of before."""
        loop, fetcher = trainer.fit_loop, trainer.fit_loop._data_fetcher
        for loader in loop._combined_loader.flattened:
            _set_epoch(loader, loop.epoch_progress.current.processed)
        set_rng_state(self._epoch_rng)
        iter(fetcher)
        for _ in range(loop.epoch_loop.batch_progress.current.completed + 1):
            next(fetcher if fetcher.length is None else fetcher.iterator)

    def on_train_batch_end(
        self,
        trainer: pl.Trainer,
        pl_module: pl.LightningModule,
        outputs: Any,
        batch: Any,
        batch_idx: int,
    ) -> None:
        step = trainer.global_step
        if step == self._step:  # gradients are being accumulated
            return
        self._step = step
        loop = trainer.fit_loop
        is_followed = loop.epoch_loop._should_check_val_fx(loop._data_fetcher)
        is_last = loop.epoch_loop._num_ready_batches_reached()
        is_allowed = not is_followed and not is_last
        if is_allowed and step == loop.max_steps:  # at the end the epoch counts as whole
            self._saves.finish(step)
        else:
            self._saves.on_step(step, is_allowed)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._saves.finish(self._step)

    def on_fit_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._saves.finish(self._step)  # after resuming from memory there may be no step to train
        self._wait()

    def on_exception(
        self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException
    ) -> None:
        self._wait()

    def _wait(self):
        if self.snapshot is not None:
            self.snapshot.wait()


def _is_between_epochs(loop):
    now = loop.epoch_progress.current
    return now.ready == now.completed


def _set_epoch(loader, epoch):
    """Lightning does this when its epoch begins, which is behind on_train_start()."""
    batches = getattr(loader, 'batch_sampler', None)
    for sampler in (getattr(loader, 'sampler', None), getattr(batches, 'sampler', None)):
        if hasattr(sampler, 'set_epoch'):
            sampler.set_epoch(epoch)


def _objects_of(trainer):
    """Optimizers, schedulers and the scaler, by name."""
    optimizers = {'optimizer': trainer.optimizers[0]} if trainer.optimizers else {}
    for number, optimizer in enumerate(trainer.optimizers[1:], 1):
        optimizers[f'optimizer_{number}'] = optimizer
    for number, config in enumerate(trainer.lr_scheduler_configs):
        optimizers[f'scheduler_{number}'] = config.scheduler
    return {**optimizers, 'precision': trainer.precision_plugin}


class _Loops:
    """Progress of Lightning's loops, without that of the loaders."""

    def __init__(self, trainer):
        self._trainer = trainer

    def state_dict(self):
        state = self._trainer.fit_loop.state_dict()
        own = {key: of for key, of in state['state_dict'].items() if key != 'combined_loader'}
        return {**state, 'state_dict': own}

    def load_state_dict(self, state):
        loop = self._trainer.fit_loop
        loop.load_state_dict(state)
        if _is_between_epochs(loop):  # else Lightning takes the next epoch for finished
            loop.restarting = loop._resuming_from_checkpoint = False


class _EpochGenerators:
    """The random generators when the epoch began, which the data follows from."""

    def __init__(self, callback):
        self._callback = callback

    def state_dict(self):
        return self._callback._epoch_rng

    def load_state_dict(self, state):
        self._callback._epoch_rng = state


class _Callbacks:
    """The states of the other callbacks."""

    def __init__(self, trainer, own):
        self._trainer, self._own = trainer, own

    def _others(self):
        return [each for each in self._trainer.callbacks if each is not self._own]

    def state_dict(self):
        states = {each.state_key: each.state_dict() for each in self._others()}
        return {key: state for key, state in states.items() if state}

    def load_state_dict(self, state):
        for each in self._others():
            if each.state_key in state:
                each.load_state_dict(state[each.state_key])
