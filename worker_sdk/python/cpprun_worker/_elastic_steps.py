"""elastic.steps(): a training loop that stays in place when another worker fails.

    from cpprun_worker import elastic

    model, optimizer = make_model()
    ddp = elastic.data_parallel(model)
    for step in elastic.steps(1000, model=model, optimizer=optimizer, backend='gloo'):
        with elastic.commit():
            optimizer.zero_grad()
            loss_of(ddp, batch_of(step, elastic.current_round())).backward()
            optimizer.step()

The block commits its step when it ends. If it ends by an exception because another worker has
failed, the step is not committed: the loop meets the replacement in the next round, and begins
again with the first step that no worker has committed. Workers that lack a step, such as the
replacement, get the objects from the lowest rank that has committed most steps.
"""

from __future__ import annotations

import copy
import itertools
import random
import weakref
from types import TracebackType
from typing import Any, Callable, ContextManager, Iterator, SupportsIndex

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ._arguments import STEPS, whole_number
from ._elastic import HEALTH_CHECK_TAKES, Round, Runner, Terms

_loops: list[_Loop] = []  # the loop that runs, if one does
_wrapped: weakref.WeakSet[DataParallel] = weakref.WeakSet()  # all data_parallel() of this process
_numbers = itertools.count()


def steps(
    stop: SupportsIndex,
    *,
    first: SupportsIndex = 0,
    backend: str | None = None,
    min_world: SupportsIndex = 1,
    health_check: Callable[[], Any] | None = None,
    health_check_timeout: float = HEALTH_CHECK_TAKES,
    group_options: dict[str, Any] | None = None,
    **objects: Any,
) -> Iterator[int]:
    """Yields the steps from `first` to stop - 1, each until all workers have committed it. The body
    of the loop is one block `with elastic.commit():`.

    Makes the process group of each round by init_process_group(backend, **group_options).
    objects: what a step changes and a new worker needs: modules, optimizers, samplers, schedulers,
    all with state_dict and load_state_dict. first: the number of steps that these contain; a worker
    that joins later may be behind. min_world and health_check: as in elastic()."""
    stop, first = whole_number('stop', stop, STEPS), whole_number('first', first, STEPS)
    for name, each in objects.items():
        if isinstance(each, (DistributedDataParallel, DataParallel)):
            raise TypeError(f'steps() takes the module itself: {name} is a {type(each).__name__}')
        if not (hasattr(each, 'state_dict') and hasattr(each, 'load_state_dict')):
            raise TypeError(f'{name} has no state_dict() and load_state_dict()')
    if _loops:
        raise RuntimeError('another loop of elastic.steps() is running in this process')
    terms = Terms(min_world, health_check, health_check_timeout)
    return _Loop(terms, first, objects, backend, group_options or {}).run(stop)


def commit() -> _Commit:
    """The block of one step in a loop of steps(). Its now() commits the step before the end of the
    block: what follows may fail, and the step is not made again."""
    return _Commit(_loop())


def current_round() -> Round:
    """The Round in which the loop is: rank, world_size and the others."""
    return _loop().round


def data_parallel(module: nn.Module, **options: Any) -> DataParallel:
    """DistributedDataParallel(module, **options) of the current round: the loop makes it anew for
    each round, and this object stays. It can be called inside of the loop only."""
    return DataParallel(module, options)


def _loop() -> _Loop:
    if not _loops:
        raise RuntimeError('this can be called inside of a loop of elastic.steps() only')
    return _loops[-1]


class DataParallel(nn.Module):
    """See data_parallel()."""

    def __init__(self, module: nn.Module, options: dict[str, Any]) -> None:
        super().__init__()
        self.module = module
        self._options = options
        # The DistributedDataParallel; in a list, so that it is no submodule.
        self._made: list[DistributedDataParallel] = []
        self._comm_hook: tuple[Any, ...] = ()  # or the arguments of register_comm_hook()
        self.number = next(_numbers)  # the same on all ranks
        _wrapped.add(self)

    def forward(self, *args: Any, **options: Any) -> Any:
        return self._current()(*args, **options)

    def no_sync(self) -> ContextManager[None]:
        return self._current().no_sync()

    def register_comm_hook(self, state: object, hook: Callable[[object, Any], Any]) -> None:
        """As that of DistributedDataParallel, in this round and in all that follow. `state` stays,
        so a process group in it must be None, which means the default group of the round."""
        if self._comm_hook:
            raise RuntimeError('register_comm_hook() can be called once')
        for each in self._made:
            each.register_comm_hook(state, hook)
        self._comm_hook = (state, hook)

    def use(self, round: Round | None) -> None:
        """From now on in this round; None: in none."""
        self._made = [round.data_parallel(self.module, **self._options)] if round else []
        if self._made and self._comm_hook:
            self._made[0].register_comm_hook(*self._comm_hook)

    def _current(self) -> DistributedDataParallel:
        if not self._made:
            raise RuntimeError('elastic.data_parallel() works inside of a loop of elastic.steps()')
        return self._made[0]


class _Loop:
    """One call of steps()."""

    def __init__(self, terms, first, objects, backend, group_options):
        self.round = None
        self._runner = Runner(terms)
        self._runner.completed = first
        self._objects = objects
        self._backend = backend
        self._group_options = group_options
        self._before = None  # what undoes a step that is not committed
        self._is_committed = False
        self._is_over = False  # the round: another worker has failed
        optimizers = [each for each in objects.values() if isinstance(each, torch.optim.Optimizer)]
        self._hooks = [each.register_step_pre_hook(self._on_optimizer) for each in optimizers]

    def run(self, stop):
        _loops.append(self)
        try:
            self._enter()
            while True:
                while self._runner.completed < stop:
                    self._before = None
                    yield self._runner.completed
                    if self._before is None:
                        raise RuntimeError(
                            'the body of the loop must be a block "with elastic.commit():"'
                        )
                    if self._is_over:
                        self._enter_next()
                # Until all have committed the last step, one that lacks it may need this worker.
                if self._is_everybody_done():
                    return
                self._enter_next()
        finally:
            self._end()

    def begin(self):
        """A step begins."""
        self._before = _Before(self._objects)
        self._is_committed = False

    def complete(self):
        """The step is complete in this worker."""
        if self._is_committed:
            return
        self._is_committed = True
        self._runner.is_torn = False
        self.round.commit(self._runner.completed + 1)

    def fail(self, error):
        """The block has ended by this exception. Whether the loop continues."""
        if not isinstance(error, Exception) or not self._runner.regroups_after(error):
            return False
        self._is_over = True
        if not self._is_committed:
            self._before.restore(self._objects)
        return True

    def _on_optimizer(self, *_):
        """Its step begins to change parameters. If the block fails from here on, they are of no
        whole step."""
        self._runner.is_torn = self._before is not None and not self._is_committed

    def _is_everybody_done(self):
        try:
            dist.barrier()
            self.round.check()  # an aborted barrier of NCCL returns
            return True
        except Exception as error:
            if not self._runner.regroups_after(error):
                raise
            return False

    def _enter_next(self):
        self._leave()
        self._enter()

    def _enter(self):
        """Forms the group of the round, and agrees on the step that follows."""
        while True:
            try:
                self.round = self._runner.round()
                self.round.init_process_group(self._backend, **self._group_options)
                self.round._share(self._objects)
                for each in sorted(_wrapped, key=lambda made: made.number):
                    each.use(self.round)
                return
            except Exception as error:
                if not self._runner.regroups_after(error):
                    raise
            self._leave()

    def _leave(self):
        for each in _wrapped:
            each.use(None)
        self._runner.next_round()
        self._is_over = False

    def _end(self):
        for hook in self._hooks:
            hook.remove()
        _loops.remove(self)
        self._runner.close()


class _Commit:
    """See commit()."""

    def __init__(self, loop: _Loop) -> None:
        self._loop = loop

    def __enter__(self) -> _Commit:
        self._loop.begin()
        return self

    def now(self) -> None:
        self._loop.complete()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if error is None:
            try:
                self._loop.complete()
                return False
            except Exception as late:  # the agreement on the order of gradients, in its first step
                if not self._loop.fail(late):
                    raise
                return True
        return self._loop.fail(error)


class _Before:
    """The state before a step, of all that the step may change before its optimizer steps."""

    def __init__(self, objects):
        self._random = random.getstate()
        self._torch_random = torch.get_rng_state()
        self._buffers = {}  # of modules, such as BatchNorm's
        self._states = {}  # of samplers, schedulers and the like, which are small
        for name, each in objects.items():
            if isinstance(each, nn.Module):
                self._buffers[name] = [buffer.detach().clone() for buffer in each.buffers()]
            elif not isinstance(each, torch.optim.Optimizer):
                self._states[name] = copy.deepcopy(each.state_dict())

    def restore(self, objects):
        random.setstate(self._random)
        torch.set_rng_state(self._torch_random)
        for name, each in objects.items():
            if isinstance(each, torch.optim.Optimizer):
                each.zero_grad(set_to_none=True)  # a part of the gradients of the step
            elif isinstance(each, nn.Module):
                with torch.no_grad():
                    for buffer, before in zip(each.buffers(), self._buffers[name]):
                        buffer.copy_(before)
            else:
                each.load_state_dict(self._states[name])
