"""Communication between a Python training script and its cpprun agent.

    import cpprun_worker

    cpprun_worker.enable_graceful_stop()     # this script saves and exits on a stop request
    for step in ...:
        train()
        cpprun_worker.heartbeat(step)
        if cpprun_worker.should_stop():         # all ranks must agree on it first
            save()
            sys.exit(cpprun_worker.STOPPED_RESUMABLE)

Without an agent (under torchrun, or started by hand) every call works: request_commit() returns
True, and reports have no effect. Thread-safe; the first call connects. Pure Python, without torch.
The C++ headers describe each call in more detail: cpprun/worker/agent_link.hpp,
snapshot_notice.hpp.

Snapshot saves and resumes a training, and DistributedSampler divides its data; these need torch
(docs/snapshots-python.md).
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterator, SupportsIndex

from . import _agent, _faults, _program_end  # noqa: F401  (registers a handler of atexit)
from ._arguments import absolute_path as _absolute_path
from ._arguments import whole_number as _whole_number

FaultError = _faults.FaultError

# Exit code of a script that stopped on request and has saved a complete snapshot.
STOPPED_RESUMABLE = 75

# Phases of heartbeat().
STARTING, READY, TRAINING, EVALUATING, SAVING, ENDING = range(6)

_lock = threading.Lock()
_heartbeats: list[bool] = []  # not empty after the first heartbeat()
_connected: list[_agent.Agent | None] = []  # empty before the first call, then the agent or None
_stop_signal = threading.Event()
# After watch_ddp(): the model, which iteration torch had measured, the next look.
_ddp: list[Any] = []
_own_stops: list[bool] = []  # not empty after enable_graceful_stop()
_plan: list[_faults.Plan] = []  # empty before the first fault point, then the fault plan


def _own_agent() -> _agent.Agent | None:
    if not _connected:
        with _lock:
            if not _connected:
                _connected.append(_agent.connect(os.environ.get('CPPRUN_AGENT', '')))
    return _connected[0]


def has_agent() -> bool:
    """True if a cpprun agent started this process and answers."""
    return _own_agent() is not None


def heartbeat(step: SupportsIndex, phase: SupportsIndex = TRAINING) -> None:
    """Reports that training has completed `step`. Takes a microsecond; call it after each step.

    The first heartbeat with TRAINING ends the startup or recovery time. Heartbeats with STARTING
    mean that there is no step yet, so that a stop request loses no work.
    """
    step, phase = _whole_number('step', step), _whole_number('phase', phase, range(ENDING + 1))
    if not _heartbeats:
        _heartbeats.append(True)
    agent = _own_agent()
    if agent:
        agent.beat(step, phase)
        if _ddp and phase == TRAINING:
            _read_ddp(agent)
        if phase == TRAINING:
            agent.send_first_step(step)


class step:
    """A training step, as `with step(number) as this:`. At its end it is a heartbeat.

    Call this.compute_done() where the rank is about to wait for others: before the first collective
    of the step, and with DistributedDataParallel before backward(). Between two collectives,
    `with this.computing():` adds what is computed there. cpprun finds slow ranks by these times
    (docs/how-to/bad-nodes.md); a step without them counts for nothing.
    """

    def __init__(self, number: SupportsIndex) -> None:
        self._number = _whole_number('step', number)
        self._began: int | None = None
        self._computed: int | None = None

    def __enter__(self) -> step:
        self._began = time.perf_counter_ns()
        return self

    def compute_done(self) -> None:
        """The time since the step began, or since computing() was entered, was compute time."""
        if self._began is not None:
            self._computed = (self._computed or 0) + time.perf_counter_ns() - self._began
            self._began = None

    @contextlib.contextmanager
    def computing(self) -> Iterator[None]:
        self.compute_done()
        self._began = time.perf_counter_ns()
        try:
            yield
        finally:
            self.compute_done()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            return
        agent = _own_agent()
        if agent and self._computed is not None:
            agent.add_compute(self._computed)
        heartbeat(self._number)


@contextlib.contextmanager
def section(name: str, limit: float | None = None) -> Iterator[None]:
    """Names a part of the program, as `with section('checkpoint', limit=600):`.

    A worker that stays longer than `limit` seconds in it hangs. Without a limit cpprun learns one
    from the times that the section took before; a worker that is busy does not hang then. A hang
    report names the section. Sections may be nested, also by several threads: the one that was
    entered last counts.
    """
    if not isinstance(name, str) or not name:
        raise TypeError('the name of a section is a text')
    if limit is not None and not 0 < limit < 1e9:
        raise ValueError(f'the limit of a section is {limit}; write seconds above 0')
    agent = _own_agent()
    if agent:
        entered = agent.enter_section(name, 0 if limit is None else int(limit * 1e9))
    try:
        yield
    finally:
        if agent:
            agent.leave_section(entered)


def watch_ddp(model: Any) -> None:
    """Takes the compute times of this DistributedDataParallel from torch's own measurement.

    torch measures the first ten iterations and then one of a hundred, on CPUs and with CUDA. Each
    heartbeat() then reads what is new. Not together with step.compute_done().
    """
    if not hasattr(model, '_get_ddp_logging_data'):
        raise TypeError('watch_ddp needs a torch.nn.parallel.DistributedDataParallel')
    _ddp[:] = [model, 0, 0]


def _read_ddp(agent: _agent.Agent) -> None:
    model, seen, due = _ddp
    now = time.monotonic()
    if now < due:
        return
    _ddp[2] = now + 1  # torch's data takes longer to read than a heartbeat
    data = model._get_ddp_logging_data()
    measured = data.get('backward_compute_time_end', 0)
    taken = data.get('forward_compute_time', 0) + data.get('backward_compute_time', 0)
    if measured != seen and taken > 0:
        agent.add_compute(taken)
        _ddp[1] = measured


def count_collective() -> None:
    """Call it before each collective. In a hang, the rank with the lowest count is reported."""
    agent = _own_agent()
    if agent:
        agent.count()


def report_ready() -> None:
    """Reports that setup is complete. The agent logs when all workers of the round are ready."""
    agent = _own_agent()
    if agent:
        agent.send_ready()


def should_stop() -> bool:
    """True if the agent has requested a stop; without an agent, if SIGTERM has arrived after
    enable_graceful_stop()."""
    agent = _own_agent()
    return _stop_signal.is_set() or (agent is not None and agent.wants_stop())


def enable_graceful_stop() -> None:
    """Promises that this script saves and exits with STOPPED_RESUMABLE once should_stop() is True.

    On a stop request the agent then waits --shutdown-timeout before it sends SIGTERM. SIGTERM still
    ends the script: the agent sends it when the round cannot save, as after another worker's death.
    Without an agent, SIGTERM is the stop request, unless the script has installed a handler.
    Snapshot.maybe_save() leaves the requests to a script that has called this.
    """
    if not _own_stops:
        _own_stops.append(True)
    agent = _own_agent()
    if agent:
        agent.set_can_save(True)
        return
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: _stop_signal.set())


def _script_stops() -> bool:
    """Whether the script handles stop requests itself."""
    return bool(_own_stops)


def _set_can_save(can_save: bool) -> None:
    """Whether the agent lets this worker save on a stop request, or sends SIGTERM at once."""
    agent = _own_agent()
    if agent:
        agent.set_can_save(can_save)


def resume_path() -> str | None:
    """Path of the snapshot that the launcher chose to resume from; None if there is none."""
    return os.environ.get('CPPRUN_RESUME_FROM') or None


def report_resumed(
    step: SupportsIndex, path: str | os.PathLike[str], fell_back: bool = False
) -> None:
    """Reports that training resumed from the snapshot of `step` at `path`; -1 and '': from none.

    fell_back: the snapshot of resume_path() was unusable; later rounds will not choose it.
    """
    step, path = _whole_number('step', step), _absolute_path(path) if path else ''
    agent = _own_agent()
    if agent:
        agent.send_resumed(step, path, fell_back)


def request_commit(step: SupportsIndex) -> bool:
    """Asks the agent whether this rank may give the snapshot of `step` its final name.

    Call it on the rank that renames, before the rename. False: do not rename, because the round has
    ended or stops, or the agent does not answer, and another round may be running. Prints the
    reason on stderr.
    """
    is_given, why = _request_commit(step)
    if not is_given:
        print(f'cpprun: the snapshot of step {step} is not committed: {why}', file=sys.stderr)
    return is_given


def _request_commit(step: SupportsIndex) -> tuple[bool, str]:
    """(True, ''), or False and the reason."""
    step = _whole_number('step', step)
    _own_plan().inject_due(None, step, _faults.SAVING)
    agent = _own_agent()
    return agent.request_commit_permission(step) if agent else (True, '')


def report_snapshot(step: SupportsIndex, path: str | os.PathLike[str]) -> None:
    """Reports that the snapshot of `step` at `path` is committed."""
    step, path = _whole_number('step', step), _absolute_path(path)
    agent = _own_agent()
    if agent:
        agent.send_snapshot(step, path)


def newest_snapshot() -> int | None:
    """Step of the newest snapshot that a worker of this node reported in this round, or None."""
    agent = _own_agent()
    return agent.newest_snapshot() if agent else None


def fault_point(epoch: SupportsIndex | None = None, step: SupportsIndex | None = None) -> None:
    """Injects the faults of CPPRUN_FAULTS that match this epoch and step.

    Call it at the start of each step. Without CPPRUN_FAULTS it costs almost nothing. Plans of
    faults: docs/reference/faults.md.
    """
    if epoch is not None:
        epoch = _whole_number('epoch', epoch)
    if step is not None:
        step = _whole_number('step', step)
    _own_plan().inject_due(epoch, step, _faults.TRAINING)


def _own_plan() -> _faults.Plan:
    if not _plan:
        with _lock:
            if not _plan:
                _plan.append(_faults.Plan(_own_agent))
    return _plan[0]


def _begin_round() -> None:
    """This process has survived its round, and its environment is that of the next one."""
    agent = _own_agent()
    if agent:
        agent.begin_round()
    _plan.clear()
    _stop_signal.clear()


def __getattr__(name: str) -> Any:
    """Imports torch at the first use of Snapshot or DistributedSampler only."""
    if name in ('elastic', 'HealthCheckError', 'RegroupError'):
        from . import _elastic

        return getattr(_elastic, name)
    if name == 'DistributedSampler':
        from ._sampler import DistributedSampler

        return DistributedSampler
    if name != 'Snapshot':
        raise AttributeError(f'module {__name__!r} has no attribute {name!r}')
    from ._snapshot.snapshot import Snapshot

    return Snapshot


if TYPE_CHECKING:
    from ._elastic import HealthCheckError as HealthCheckError
    from ._elastic import RegroupError as RegroupError
    from ._elastic import elastic as elastic
    from ._sampler import DistributedSampler as DistributedSampler
    from ._snapshot.snapshot import Snapshot as Snapshot

if os.environ.get('CPPRUN_FAULTS'):
    _own_plan().inject_due(None, None, _faults.STARTING)
