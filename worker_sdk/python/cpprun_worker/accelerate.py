"""Snapshots for Hugging Face Accelerate.

    from cpprun_worker import accelerate as snapshots

    state = snapshots.snapshot(accelerator)    # after prepare() and register_for_checkpointing()
    step = state.resume()
    state.maybe_save(step, every=100)          # after each step

docs/how-to/snapshots-accelerate.md describes it.
"""

from __future__ import annotations

import os
from typing import Any, Iterator

from ._snapshot.generators import rng_state, set_rng_state
from ._snapshot.snapshot import Snapshot

_EPOCH_START = '_cpprun_epoch_start'  # attribute of a loader


class _Snapshot(Snapshot):
    """Gradients are not saved, so no save is between the backward passes of an optimizer step."""

    accelerator: Any

    def maybe_save(
        self, step: int, every: int | str = 'auto', disk_every: int | str | None = None
    ) -> bool:
        """As of Snapshot. While the accelerator accumulates gradients it does nothing: what is due
        then is done in the first call behind the optimizer step."""
        if not self.accelerator.sync_gradients:
            return False
        return super().maybe_save(step, every, disk_every)


def snapshot(
    accelerator: Any, folder: str | os.PathLike[str] | None = None, **options: Any
) -> Snapshot:
    """A Snapshot of what the accelerator has prepared, and of what is registered for checkpointing.

    options: those of Snapshot, such as extra, per_rank, keep.
    """
    models, optimizers = accelerator._models, accelerator._optimizers
    if len(models) != 1:
        raise ValueError(f'the accelerator has prepared {len(models)} models; a Snapshot has one')
    if str(accelerator.distributed_type).endswith(('DEEPSPEED', 'MEGATRON_LM', 'XLA')):
        raise ValueError(f'a Snapshot cannot save a model of {accelerator.distributed_type}')
    extra = options.pop('extra', None)
    extra = {} if extra is None else extra
    parts = (
        ('optimizer', optimizers[1:]),
        ('scheduler', accelerator._schedulers),
        ('registered', accelerator._custom_objects),
    )
    for name, objects in parts:
        extra.update({f'{name}_{number}': each for number, each in enumerate(objects, 1)})
    extra['data_order'] = _DataOrder(accelerator)
    made = _Snapshot(
        folder,
        model=models[0],
        optimizer=optimizers[0].optimizer if optimizers else None,
        scaler=accelerator.scaler,
        extra=extra,
        **options,
    )
    made.accelerator = accelerator
    return made


class _DataOrder:
    """The generators that shuffle the prepared loaders, now and when remaining() began an epoch."""

    def __init__(self, accelerator):
        self._accelerator = accelerator

    def _generators(self):
        for number, loader in enumerate(self._accelerator._dataloaders):
            generator = getattr(loader, 'synchronized_generator', None)
            if generator is not None:
                yield str(number), loader, generator

    def state_dict(self):
        return {
            number: [generator.get_state(), loader.__dict__.get(_EPOCH_START)]
            for number, loader, generator in self._generators()
        }

    def load_state_dict(self, state):
        for number, loader, generator in self._generators():
            if number in state:
                now, loader.__dict__[_EPOCH_START] = state[number]
                generator.set_state(now)


def remaining(accelerator: Any, loader: Any, done: int) -> Iterator[Any]:
    """The batches behind the first `done` of the epoch that loader.set_epoch() has named. With
    `done` it leaves the random generators as they are, since resume() has set them."""
    generator = getattr(loader, 'synchronized_generator', None)
    if not done:
        if generator is not None:
            loader.__dict__[_EPOCH_START] = generator.get_state()
        yield from loader
        return
    if generator is not None and _EPOCH_START in loader.__dict__:
        generator.set_state(loader.__dict__[_EPOCH_START])
    kept = rng_state()
    rest = accelerator.skip_first_batches(loader, done)
    if hasattr(rest, 'set_epoch'):
        rest.set_epoch(getattr(loader, 'iteration', 0))
    for number, batch in enumerate(rest):
        if number == 0:
            set_rng_state(kept)
        yield batch
