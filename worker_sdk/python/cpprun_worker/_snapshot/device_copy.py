"""Copies from GPUs into an arena. Neither the training thread nor the GPU's kernels wait for them.

The arena is pinned, so that a GPU writes into it beside its kernels. What only the steps of an
optimizer change is copied on a stream of its own, and the next step of that optimizer waits for it
on the GPU (StepFence). Everything else is copied on the training's stream, in front of what the
training queues there later. The thread that completes the save waits for the copies.

Source: "API synchronization behavior" of the CUDA Runtime API: copies between a device and pinned
memory are asynchronous. C++ counterpart: worker_sdk/cpprun/snapshot/save/device_copy.hpp, which
waits in the training thread.
"""

from __future__ import annotations

import functools
import threading
from typing import Any, Sequence

import torch

_PORTABLE = 1  # cudaHostRegisterPortable: pinned for all GPUs
_pinning = threading.Lock()


def pin(address: int, size: int, device: torch.device) -> bool:
    """False: CUDA refuses; copies into this memory take several times as long then. `device`: that
    this process uses; another one would get a context of its own."""
    with _pinning, torch.cuda.device(device):
        return int(torch.cuda.cudart().cudaHostRegister(address, size, _PORTABLE)) == 0


def unpin(address: int) -> None:
    """Before pinned memory is unmapped."""
    with _pinning:
        torch.cuda.cudart().cudaHostUnregister(address)


class StepFence:
    """Holds the steps of optimizers until the GPU has copied what they change.

    Steps that it does not see, such as those of a CUDA graph, can't be held: only what belongs to
    an optimizer that has made a step since the last save is copied beside the training. The
    training thread calls all methods.
    """

    def __init__(self, optimizers: Sequence[Any]) -> None:
        self._stepped: set[int] = set()  # ids of optimizers
        self._to_hold: dict[int, DeviceCopies] = {}  # copies that the next step waits for, by id
        self._is_usable = True
        hook = torch.compiler.disable(self._before_step)
        self._optimizers = [each for each in optimizers if _has_hook(each, hook)]

    def storages(self) -> dict[Any, tuple[torch.Tensor, int]]:
        """What only a step changes, as far as this fence holds that step:
        {key_of(tensor): (the tensor, id of its optimizer)}."""
        found = {}
        for optimizer in self._optimizers:
            if id(optimizer) in self._stepped and self._is_usable:
                for tensor in _tensors_of(optimizer):
                    found[key_of(tensor)] = tensor, id(optimizer)
        self._stepped.clear()
        return found

    def hold(self, copies: DeviceCopies) -> None:
        """The next step of each optimizer waits for these copies."""
        self._to_hold = {id(optimizer): copies for optimizer in self._optimizers}

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        copies = self._to_hold.pop(id(optimizer), None)
        if torch.cuda.is_current_stream_capturing():
            self._give_up(copies, 'the step of an optimizer was captured into a CUDA graph')
            return
        self._stepped.add(id(optimizer))
        if copies is None or copies.is_complete():
            return
        if copies.has_changed(id(optimizer)):
            self._give_up(copies, 'a parameter has changed otherwise than by the optimizer')
        copies.hold_training()

    def _give_up(self, copies, why):
        self._is_usable = False
        if copies is not None and not copies.is_complete():
            copies.failed = f'{why} while it was being copied; later saves are copied in its stream'


class DeviceCopies:
    """The copies of one save. The training thread queues them; wait() is for any thread."""

    def __init__(self, fence: StepFence | None) -> None:
        self._fence = fence
        self._fenced = fence.storages() if fence else {}
        # (into, source) of each copy, by device and whether it is beside the training. Until the
        # copies are complete, the memory of the sources must not be used for other tensors.
        self._pairs: dict[Any, list[tuple[torch.Tensor, torch.Tensor]]] = {}
        self._events: list[tuple[torch.device, torch.cuda.Event]] = []
        # (id of the optimizer, tensor, its version when its copy began)
        self._versions: list[tuple[int, torch.Tensor, int]] = []
        self.failed = ''  # why the copy may be of two different steps

    def add(self, into: torch.Tensor, source: torch.Tensor) -> None:
        """A copy of bytes on a device into the arena; both are of type uint8."""
        fenced = self._fenced.get(key_of(source))
        if fenced is not None:
            tensor, optimizer = fenced
            self._versions.append((optimizer, tensor, tensor._version))
        key = source.device, fenced is not None
        self._pairs.setdefault(key, []).append((into, source))

    def start(self) -> None:
        """Queues all copies."""
        for (device, is_beside), pairs in self._pairs.items():
            stream = training = torch.cuda.current_stream(device)
            if is_beside:
                stream = _side_stream(device)
                stream.wait_stream(training)
            with torch.cuda.stream(stream):
                for into, source in pairs:
                    into.copy_(source, non_blocking=True)
            self._events.append((device, stream.record_event()))
        if self._versions:
            self._fence.hold(self)

    def is_complete(self) -> bool:
        return all(event.query() for _, event in self._events)

    def has_changed(self, optimizer: int) -> bool:
        """Whether something of the optimizer with this id has changed since its copy began."""
        return any(
            of == optimizer and tensor._version != version
            for of, tensor, version in self._versions
        )

    def hold_training(self) -> None:
        """What the training queues from now on begins after the copies."""
        for device, event in self._events:
            event.wait(torch.cuda.current_stream(device))

    def wait(self) -> None:
        """Until all copies are complete. RuntimeError: they can't be used, or a GPU has failed."""
        for _, event in self._events:
            event.synchronize()
        self._pairs.clear()
        self._versions.clear()
        if self.failed:
            raise RuntimeError(self.failed)


@functools.lru_cache(maxsize=None)
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


def key_of(tensor: torch.Tensor) -> Any:
    return tensor.device, tensor.untyped_storage().data_ptr()


def _has_hook(optimizer, hook):
    try:
        optimizer.register_step_pre_hook(hook)
    except AttributeError:  # a wrapper that is no whole optimizer
        return False
    return True


def _tensors_of(optimizer):
    """Parameters and their states, as their shards if they are sharded."""
    for group in optimizer.param_groups:
        for parameter in group['params']:
            yield _local(parameter)
    for state in optimizer.state.values():
        for value in state.values() if isinstance(state, dict) else ():
            if isinstance(value, torch.Tensor):
                yield _local(value)


def _local(tensor):
    with torch.no_grad():
        return tensor.to_local() if hasattr(tensor, 'to_local') else tensor
