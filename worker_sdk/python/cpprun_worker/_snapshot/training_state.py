"""What a snapshot saves, and in which file it lies: model.pt is the model's state_dict, optim.pt
has what else is the same on all ranks, by name, rank-<r>.pt what is the rank's own.
"""

from __future__ import annotations

import collections
import sys
from collections import ChainMap
from collections.abc import MutableMapping
from typing import Any, NamedTuple

import torch

from . import bucket_order
from .device_copy import StepFence
from .generators import (
    generator_state,
    is_generator,
    resume_generators,
    rng_state,
    seeded_rng_state,
    set_generator_state,
)
from .manifest import MODEL, OTHERS, SHARDED_METADATA, rank_file
from .state_pickle import StateError, StateWriter, dtype_name

FORMAT_KEY, STEP_KEY, SECONDS_KEY = 'CPPRUN_FORMAT', 'STEP', 'TRAINING_SECONDS'
BUCKETS_KEY, OTHER_BUCKETS_KEY = 'ddp_bucket_order', 'ddp_bucket_orders_of_extra'
RNG_KEY = 'rng'
RESERVED = (FORMAT_KEY, STEP_KEY, SECONDS_KEY, BUCKETS_KEY, OTHER_BUCKETS_KEY, RNG_KEY)
_DICTS = (dict, collections.OrderedDict, collections.defaultdict, collections.Counter)
EPOCH_NAMES = ('epochs_run', 'epoch', 'epochs_done')


class StagedFile(NamedTuple):
    """A file before its storages are copied."""

    name: str
    pickle: bytes
    storages: list  # of state_pickle.Storage


class Contents(NamedTuple):
    shared: list  # of StagedFile: the same on all ranks
    sharded: Any  # sharded.Captured, or None
    own: StagedFile
    epoch: int
    fence: Any  # device_copy.StepFence, or None


def unwrapped(model):
    """The module inside DistributedDataParallel and torch.compile."""
    while True:
        if isinstance(model, torch.nn.parallel.DistributedDataParallel):
            model = model.module
        elif hasattr(model, '_orig_mod'):
            model = model._orig_mod
        else:
            return model


def _is_sharded(model):
    if not isinstance(model, torch.nn.Module):
        return False
    fsdp1 = getattr(sys.modules.get('torch.distributed.fsdp'), 'FullyShardedDataParallel', ())
    is_wrapped = any(isinstance(each, fsdp1) for each in model.modules())
    return is_wrapped or any(hasattr(each, 'to_local') for each in model.parameters())


def _refuse_parts_of_fsdp1(named):
    """ValueError: one of these, which would be saved as the same on all ranks, has parameters that
    FSDP1 has divided between them."""
    for name, value in named.items():
        parameters = ()
        if isinstance(value, torch.nn.Module):
            parameters = value.parameters()
        elif isinstance(value, torch.optim.Optimizer):
            parameters = (each for group in value.param_groups for each in group['params'])
        if any(getattr(each, '_fsdp_flattened', False) for each in parameters):
            raise ValueError(
                f"{name!r} has parts of parameters that FullyShardedDataParallel has divided "
                'between the ranks: a Snapshot needs the wrapped module as model, and its '
                'optimizer as optimizer'
            )


def _refuse_zero(named):
    zero = getattr(sys.modules.get('torch.distributed.optim'), 'ZeroRedundancyOptimizer', ())
    for name, value in named.items():
        if isinstance(value, zero):
            raise ValueError(
                f'{name!r} is a ZeroRedundancyOptimizer, of whose state each rank has a part: a '
                'Snapshot does not save it. Use fully_shard (FSDP2), or an optimizer of torch.optim'
            )


def _parameter_names(model):
    """Keys of the state_dict that DistributedDataParallel keeps equal on all ranks."""
    if not isinstance(model, torch.nn.Module):
        return set()
    return {name for name, _ in model.named_parameters(remove_duplicate=False)}


def _is_stateful(value):
    return hasattr(value, 'state_dict') and hasattr(value, 'load_state_dict')


_ARGUMENTS = ('model', 'optimizer', 'scheduler', 'scaler', 'sampler')


def _wrong_name(name):
    """The error for a name in extra or per_rank that the Snapshot cannot use."""
    if not isinstance(name, str):
        reason = f'names are texts, not {type(name).__name__}'
    elif name in _ARGUMENTS:
        reason = f"that is the name of an argument; give it another one, such as 'own_{name}'"
    elif name in RESERVED:
        reason = 'the file has a value of its own by that name'
    else:
        reason = 'extra and per_rank both have that name'
    return ValueError(f'a Snapshot cannot save anything as {name!r}: {reason}')


def _not_stateful(name, value):
    text = f'{name} is a {type(value).__name__}, which has no state_dict and load_state_dict'
    if isinstance(value, (list, tuple, dict)):
        place = 'per_rank' if name == 'sampler' else 'extra'
        text += f'; the further ones belong into {place}, each with a name of its own'
    return TypeError(text)


def joined(of_caller, objects):
    """A view of the caller's dict, which may still change, and of further objects by name. Values
    that are loaded go into the caller's dict."""
    for name in objects:
        if name in of_caller:
            raise _wrong_name(name)
    return ChainMap(of_caller, objects)


class TrainingState:
    """The objects of a Snapshot. `others` and `per_rank`: {name: object with state_dict}."""

    def __init__(self, model, others, extra, per_rank, has_rng, whole, ranks):
        """`whole`: what torch.distributed.checkpoint saves, an object or a dict, or None."""
        self.model = model
        self._others = others
        self._sharded = None
        self._parts = whole if isinstance(whole, MutableMapping) else {}
        self._extra = extra
        self._per_rank = per_rank
        self._has_rng = has_rng
        self._optimizers = [
            one for one in others.values() if isinstance(one, torch.optim.Optimizer)
        ]
        self._fence = None
        names = [*others, *extra, *per_rank, 'model']
        for name in names:
            if not isinstance(name, str) or name in RESERVED or names.count(name) > 1:
                raise _wrong_name(name)
        for name, value in {**others, 'model': model, 'sampler': per_rank.get('sampler')}.items():
            if value is not None and not _is_stateful(value):
                raise _not_stateful(name, value)
        if whole is not None:
            is_dict = isinstance(whole, MutableMapping)
            is_usable = is_dict or _is_stateful(whole)
            if model is not None or 'optimizer' in others or not is_usable:
                raise ValueError(
                    'sharded is an object with state_dict and load_state_dict, or a dict, in place '
                    'of model and optimizer'
                )
            from . import sharded

            whole = sharded.DictOfParts(whole) if is_dict else whole
            self._sharded = sharded.Sharded(whole, ranks)
        elif _is_sharded(model):
            from . import sharded

            names = [name for name in others if name.partition('[')[0] == 'optimizer']
            optimizers = [self._others.pop(name) for name in names]
            both = sharded.ModelAndOptimizers(unwrapped(model), optimizers)
            self._sharded = sharded.Sharded(both, ranks)
            self.model = None
        _refuse_parts_of_fsdp1({**self._others, **extra, 'model': self.model})
        _refuse_zero({**others, **extra, **per_rank})

    def capture(self, step, seconds, rank, in_memory):
        """The files of this rank. Copies no tensor of a model or an optimizer. `in_memory`: a
        worker may resume from memory of its node."""
        shared = []
        if self.model is not None:
            module = unwrapped(self.model)
            parameters = _parameter_names(module)
            writer = StateWriter()
            state = _checked('model', module.state_dict())
            # Buffers are those of the first rank.
            pickled = writer.write(state, lambda path: path[0] not in parameters)
            shared.append(StagedFile(MODEL, pickled, writer.storages))
        others = {FORMAT_KEY: 1, STEP_KEY: step, SECONDS_KEY: seconds}
        others.update((name, _state_of(name, one)) for name, one in self._others.items())
        others.update((name, _state_of(name, one)) for name, one in self._extra.items())
        order = bucket_order.of(self.model)
        if order is not None:
            others[BUCKETS_KEY] = order
        orders = {name: bucket_order.of(one) for name, one in self._extra.items()}
        others[OTHER_BUCKETS_KEY] = {name: each for name, each in orders.items() if each}
        optimizers = {
            name for name, one in self._others.items() if isinstance(one, torch.optim.Optimizer)
        }
        writer = StateWriter()
        pickled = writer.write(others, lambda path: path[0] not in optimizers)
        shared.append(StagedFile(OTHERS, pickled, writer.storages))
        captured = self._sharded.capture(in_memory) if self._sharded else None
        own = self._capture_own(rank)
        return Contents(shared, captured, own, self._epoch(), self._step_fence())

    def _step_fence(self):
        """Made when an optimizer has parameters on a GPU."""
        if self._fence is None and any(map(_is_on_gpu, self._optimizers)):
            self._fence = StepFence(self._optimizers)
        return self._fence

    def _capture_own(self, rank):
        own = {name: _state_of(name, one) for name, one in self._per_rank.items()}
        if self._has_rng:
            own[RNG_KEY] = rng_state()
        writer = StateWriter()
        return StagedFile(rank_file(rank), writer.write(own), writer.storages)

    def _epoch(self):
        """The training epoch, as the manifest shows it."""
        for name in EPOCH_NAMES:
            if type(self._extra.get(name)) is int and self._extra[name] >= 0:
                return self._extra[name]
        return 0

    def apply(self, loaded, rank):
        """Loads {file name: state}. Returns (seconds of training, names that the snapshot lacks,
        whether it lacks what is this rank's own). Raises ValueError that names what does not fit;
        then the objects may be partly loaded."""
        others = loaded.get(OTHERS, {})
        own = loaded.get(rank_file(rank))
        missing = []
        if self.model is not None:
            if MODEL not in loaded:
                raise ValueError("it has no 'model'")
            bucket_order.restore(self.model, others.get(BUCKETS_KEY))
            self._load_model(loaded[MODEL])
        if self._sharded:
            self._load_sharded(loaded.get(SHARDED_METADATA))
        for name, one in self._others.items():
            if name in others:
                _load(name, one, others[name])
            else:
                missing.append(name)
        for name, order in others.get(OTHER_BUCKETS_KEY, {}).items():
            bucket_order.restore(self._extra.get(name), order)
        _apply_values(self._extra, others, missing)
        # An object of each rank may have been saved as one of all ranks before, as C++ does.
        _apply_values(self._per_rank, {**others, **(own or {})}, missing if own else [])
        if not self._has_rng:
            rng = None
        elif own and RNG_KEY in own:
            rng = own[RNG_KEY]
        else:
            rng = seeded_rng_state(others.get(STEP_KEY, 0), rank)
        dicts = (self._extra, self._per_rank, self._parts)
        resume_generators(rng, [value for each in dicts for value in each.values()])
        lacks_own = own is None and bool(self._has_rng or self._per_rank)
        return float(others.get(SECONDS_KEY, 0)), missing, lacks_own

    def _load_model(self, saved):
        """`saved`: a state, or a StateInMemory."""
        model = unwrapped(self.model)
        if isinstance(saved, dict):
            _load('model', model, saved)
        elif isinstance(model, torch.nn.Module):
            saved.lend_to(lambda state: _load('model', model, state))
        else:  # another object may not be loaded twice
            _load('model', model, saved.copy())

    def _load_sharded(self, reader):
        if reader is None:
            raise ValueError('it has no sharded model')
        try:
            self._sharded.load(reader)
        except Exception as error:  # DCP has several kinds
            raise ValueError(f'the sharded model: {error}') from error

    def lacks(self, reader):
        """What this rank's part of a sharded model needs and a sharded.MemoryReader has not."""
        return self._sharded.lacks(reader) if self._sharded else 'a sharded model'

    def bad_tensor(self):
        """Path of a tensor of model or optimizers that has a NaN or an infinity, or None."""
        states = {'model': unwrapped(self.model).state_dict()} if self.model is not None else {}
        if self._sharded:
            states['sharded'] = self._sharded.local_state()
        for name, one in self._others.items():
            if isinstance(one, torch.optim.Optimizer):
                states[name] = one.state_dict()
        return next(_not_finite(states, ()), None)


def _not_finite(value, path):
    if isinstance(value, torch.Tensor):
        if not _is_finite(value):
            yield '.'.join(map(str, path))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _not_finite(item, (*path, key))
    elif isinstance(value, (list, tuple)):
        for key, item in enumerate(value):
            yield from _not_finite(item, (*path, key))


def _is_finite(tensor):
    """Integers are; tensors that a snapshot refuses count as finite."""
    is_inexact = tensor.is_floating_point() or tensor.is_complex()
    if not is_inexact or tensor.layout is not torch.strided:
        return True
    # torch has no isfinite() of some types of one byte.
    return bool(torch.isfinite(tensor.float() if tensor.element_size() == 1 else tensor).all())


def _is_on_gpu(optimizer):
    return any(each.is_cuda for group in optimizer.param_groups for each in group['params'])


def _checked(name, state):
    if not isinstance(state, dict):
        raise StateError(f"the state_dict of '{name}' is a {type(state).__name__}, not a dict")
    return state


def _state_of(name, value):
    if is_generator(value):
        return generator_state(value)
    return _checked(name, value.state_dict()) if _is_stateful(value) else value


def _load(name, target, state):
    options = _group_options(target)
    try:
        if is_generator(target):
            set_generator_state(target, state)
        else:
            target.load_state_dict(state)
    except Exception as error:
        raise ValueError(f"'{name}': {error}") from error
    lost = next((each for each in options if each not in _group_options(target)), None)
    if lost is not None:  # torch does not notice, and the next step would end with KeyError
        kind = type(target).__name__
        raise ValueError(
            f"'{name}': the saved parameter groups have no '{lost}', so they are of another "
            f'optimizer than this {kind}'
        )


def _group_options(optimizer):
    """Names of its hyperparameters that all its parameter groups have."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        return []
    groups = optimizer.param_groups
    return [each for each in optimizer.defaults if all(each in group for group in groups)]


def _apply_values(targets, states, missing):
    for name, value in targets.items():
        if name not in states:
            missing.append(name)
        elif _is_stateful(value) or is_generator(value):
            _load(name, value, states[name])
        else:
            targets[name] = _loaded_value(name, value, states[name])


def _loaded_value(name, value, state):
    """The program's own object with the saved content where that is possible, since the program may
    have other references to it; else one of the type that the program had, as a saved state has
    plain dicts, tuples and sets."""
    if isinstance(value, torch.Tensor) and isinstance(state, torch.Tensor):
        return _loaded_tensor(name, value, state)
    if type(value) is list and isinstance(state, list):
        value[:] = state
        return value
    if type(value) in _DICTS and isinstance(state, dict) or type(value) is set is type(state):
        value.clear()
        value.update(state)
        return value
    if hasattr(value, '_make') and isinstance(state, tuple) and len(value) == len(state):
        return value._make(state)  # a named tuple
    if isinstance(value, frozenset) and isinstance(state, set):
        return frozenset(state)
    return state


def _loaded_tensor(name, value, state):
    if value.shape == state.shape and value.dtype == state.dtype:
        with torch.no_grad():
            try:
                return value.copy_(state)
            except RuntimeError:  # its elements share memory, or it is an inference tensor
                pass
    if value.requires_grad:  # an optimizer would go on with the tensor that it has
        raise ValueError(
            f"'{name}': the saved tensor is {_kind(state)}, the program's is {_kind(value)}"
        )
    return state.to(value.device)


def _kind(tensor):
    return f'{dtype_name(tensor.dtype)} {list(tensor.shape)}'
