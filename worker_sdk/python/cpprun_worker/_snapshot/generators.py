"""The random generators of a rank, as a snapshot has them."""

from __future__ import annotations

import random
import sys
from typing import Any

import torch

from .._sampler import DistributedSampler


def _cuda_device():
    return torch.cuda.current_device() if torch.cuda.is_initialized() else None


def rng_state() -> dict[str, Any]:
    """The random generators of this rank, in types that torch.load(weights_only=True) reads."""
    state = {'cpu': torch.get_rng_state(), 'python': _state_of_python(random)}
    if _cuda_device() is not None:
        state['cuda'] = torch.cuda.get_rng_state(_cuda_device())
    if 'numpy.random' in sys.modules:  # else no code has drawn from it
        import numpy

        kind, keys, position, has_gauss, cached = numpy.random.get_state()
        if kind == 'MT19937':
            keys = torch.tensor(keys.tolist(), dtype=torch.int64)
            state['numpy'] = [kind, keys, int(position), int(has_gauss), float(cached)]
    return state


def set_rng_state(state):
    if 'cpu' in state:
        torch.set_rng_state(state['cpu'])
    if 'cuda' in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state['cuda'], torch.cuda.current_device())
    if 'python' in state:
        _set_state_of_python(random, state['python'])
    if 'numpy' in state:
        import numpy

        kind, keys, *others = state['numpy']
        numpy.random.set_state((kind, numpy.array(keys.tolist(), dtype=numpy.uint32), *others))


def _state_of_python(generator):
    version, numbers, gauss = generator.getstate()
    return [version, torch.tensor(numbers, dtype=torch.int64), gauss]


def _set_state_of_python(generator, state):
    version, numbers, gauss = state
    generator.setstate((version, tuple(numbers.tolist()), gauss))


def _is_of_numpy(value, kind):
    return isinstance(value, getattr(sys.modules.get('numpy.random'), kind, ()))


def is_generator(value: Any) -> bool:
    """Whether the functions below take it: torch.Generator, random.Random, numpy's RandomState, and
    what numpy.random.default_rng() returns."""
    if isinstance(value, random.SystemRandom):
        return False  # it has no state
    is_of_numpy = _is_of_numpy(value, 'Generator') or _is_of_numpy(value, 'RandomState')
    return is_of_numpy or isinstance(value, (torch.Generator, random.Random))


def generator_state(generator: Any) -> Any:
    if isinstance(generator, torch.Generator):
        return generator.get_state()
    if isinstance(generator, random.Random):
        return _state_of_python(generator)
    if _is_of_numpy(generator, 'RandomState'):
        return _with_lists(generator.get_state(legacy=False))
    return _with_lists(generator.bit_generator.state)


def set_generator_state(generator: Any, state: Any) -> None:
    if isinstance(generator, torch.Generator):
        generator.set_state(state)
    elif isinstance(generator, random.Random):
        _set_state_of_python(generator, state)
    elif _is_of_numpy(generator, 'RandomState'):
        generator.set_state(state)
    else:
        generator.bit_generator.state = state


def _with_lists(state):
    """The state of a bit generator with lists in place of arrays."""
    if isinstance(state, dict):
        return {name: _with_lists(value) for name, value in state.items()}
    return state.tolist() if hasattr(state, 'tolist') else state


def seeded_rng_state(step, rank):
    """For a rank of which the snapshot has no generators: seeds that follow from step and rank
    (splitmix64, as in C++)."""
    mask = 2**64 - 1
    seed = (step * 0x9E3779B97F4A7C15 + rank + 1) & mask
    seed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & mask
    seed ^= seed >> 27
    torch.manual_seed(seed)
    random.seed(seed)
    numpy = sys.modules.get('numpy')
    if numpy:
        numpy.random.seed(seed % 2**32)
    return rng_state()


def resume_generators(rng, objects):
    """Sets the generators: `rng`, a state of rng_state() or None, and torch.Generators among
    `objects`, which are loaded already.

    A DataLoader draws a seed when it makes an iterator, from torch's generator or its own. In an
    epoch that goes on, the training has drawn this number before. So where a loader has a state,
    the first iterator leaves the generators as they are. And if one of the samplers goes on, all
    generators are set once more when it begins, which is after the draw.
    """
    own = [(each, each.get_state()) for each in objects if isinstance(each, torch.Generator)]
    for each in objects:
        if isinstance(each, torch.utils.data.DataLoader) and hasattr(each, 'state_dict'):
            _resume_loader(each, [generator for generator, _ in own])

    def set_all():
        if rng is not None:
            set_rng_state(rng)
        for generator, state in own:
            generator.set_state(state)

    set_all()
    pending = [set_all]
    for each in objects:
        if isinstance(each, DistributedSampler):
            each._when_continued(lambda: pending and pending.pop()())


def _resume_loader(loader, generators):
    """`generators`: of the program. The order of a sampler of torch follows from what the program
    calls before the epoch, such as set_epoch(); the state of a DistributedSampler has the epoch,
    and set_epoch() has to come after it."""
    samplers = loader.sampler, getattr(loader.batch_sampler, 'sampler', None)
    if any(isinstance(each, DistributedSampler) for each in samplers):
        loader.state_dict()  # makes the iterator that goes on
        return

    def make_iterator():
        loader.__dict__.pop('_get_iterator', None)
        kept, states = rng_state(), [each.get_state() for each in generators]
        iterator = loader._get_iterator()
        set_rng_state(kept)
        for each, state in zip(generators, states):
            each.set_state(state)
        return iterator

    loader._get_iterator = make_iterator
