"""What a Python training script and its cpprun agent tell each other.

    import cpprun_worker

    cpprun_worker.enable_graceful_stop()                   # we save and end when asked to stop
    for step in ...:
        train()
        cpprun_worker.heartbeat(step)
        if cpprun_worker.should_stop():        # let the ranks agree on it first
            save()
            sys.exit(cpprun_worker.STOPPED_RESUMABLE)

Without an agent (under torchrun, or by hand) every call works: leave is given, notices go nowhere.
Any thread; the first call connects. Pure Python, no torch. The C++ counterparts, which say more of
each call: cpprun/worker/agent_link.hpp, snapshot_notice.hpp.
"""

import operator
import os
import signal
import sys
import threading

from . import _agent, _faults

FaultError = _faults.FaultError

# The exit code that says: stopped on request, and the snapshot is complete.
STOPPED_RESUMABLE = 75

# What heartbeat() says the worker is doing.
STARTING, READY, TRAINING, EVALUATING, SAVING, ENDING = range(6)

_lock = threading.Lock()
_connected = []  # the agent, or None, once it was looked for
_asked_by_signal = threading.Event()
_plan = []  # the faults, once they were looked for


_INT64 = range(-(2**63), 2**63)  # the agent's messages and its page have no room for more


def _whole(name, value, within=_INT64):
    """The argument as an int, checked with and without an agent: a mistake shows at once."""
    try:
        number = operator.index(value)
    except TypeError:
        wrong = f'{name} must be an integer, not {type(value).__name__}: {value!r}'
        raise TypeError(wrong) from None
    if number not in within:
        raise ValueError(f'{name} is {number}; wanted is {within[0]} to {within[-1]}')
    return number


def _path(value):
    try:
        return os.path.abspath(os.fspath(value))
    except TypeError:
        wrong = f'path must be a string or a path, not {type(value).__name__}: {value!r}'
        raise TypeError(wrong) from None


def _own_agent():
    if not _connected:
        with _lock:
            if not _connected:
                _connected.append(_agent.connect(os.environ.get('CPPRUN_AGENT', '')))
    return _connected[0]


def has_agent():
    return _own_agent() is not None


def heartbeat(step, phase=TRAINING):
    """Training goes on and has come to this step. Costs a microsecond: call it at each step's end.

    The first one in training tells the agent that the start, or the recovery, is over. One with
    STARTING before it says that no step is made yet: a request to stop then loses nothing.
    """
    step, phase = _whole('step', step), _whole('phase', phase, range(ENDING + 1))
    agent = _own_agent()
    if agent:
        agent.beat(step, phase)
        if phase == TRAINING:
            agent.send_first_step(step)


def count_collective():
    """One more collective is about to begin. In a hang the rank with the fewest is the odd one."""
    agent = _own_agent()
    if agent:
        agent.count()


def report_ready():
    """Set up and about to train; the agent notes when the last worker of a round has said so."""
    agent = _own_agent()
    if agent:
        agent.send_ready()


def should_stop():
    """The agent asks to save and end; without an agent, after enable_graceful_stop(), SIGTERM has
    come."""
    agent = _own_agent()
    return _asked_by_signal.is_set() or (agent is not None and agent.wants_stop())


def enable_graceful_stop():
    """This script saves and then ends, with STOPPED_RESUMABLE, when should_stop() says so.

    On a stop request the agent then gives it --shutdown-timeout, instead of SIGTERM at once. A
    SIGTERM still ends it: it comes when the round can't be saved any more, as after another
    worker's death.
    Without an agent SIGTERM is itself the request, unless the script has a handler of its own.
    """
    agent = _own_agent()
    if agent:
        agent.send_can_save()
        return
    is_main = threading.current_thread() is threading.main_thread()
    if is_main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, lambda *_: _asked_by_signal.set())


def resume_path():
    """The snapshot that the launcher has chosen to begin with; None if there is none."""
    return os.environ.get('CPPRUN_RESUME_FROM') or None


def report_resumed(step, path, fell_back=False):
    """Training goes on from the snapshot of this step at `path`; -1 and '': it begins anew.

    fell_back: that of resume_path() could not be used, so that no later round is to begin with it.
    """
    step, path = _whole('step', step), _path(path) if path else ''
    agent = _own_agent()
    if agent:
        agent.send_resumed(step, path, fell_back)


def request_commit(step):
    """Asks for leave to give the snapshot of this step its final name; by the rank that renames.

    False: the round is over or being stopped, or the agent does not answer, and others may be
    training already. Why is said on stderr.
    """
    step = _whole('step', step)
    _own_plan().pass_by(None, step, _faults.SAVING)
    agent = _own_agent()
    if not agent:
        return True
    is_given, why = agent.request_commit_permission(step)
    if not is_given:
        print(f'cpprun: the snapshot of step {step} is not committed: {why}', file=sys.stderr)
    return is_given


def report_snapshot(step, path):
    """The snapshot of this step is committed and lies at `path`."""
    step, path = _whole('step', step), _path(path)
    agent = _own_agent()
    if agent:
        agent.send_snapshot(step, path)


def newest_snapshot():
    """Step of the newest snapshot that a worker of this node has told in this round, or None."""
    agent = _own_agent()
    return agent.newest_snapshot() if agent else None


def fault_point(epoch=None, step=None):
    """The training loop is here: what CPPRUN_FAULTS asks for at this place happens, if anything.

    Call it at the head of every step; without faults it costs next to nothing. docs/faults.md.
    """
    if epoch is not None:
        epoch = _whole('epoch', epoch)
    if step is not None:
        step = _whole('step', step)
    _own_plan().pass_by(epoch, step, _faults.TRAINING)


def _own_plan():
    if not _plan:
        with _lock:
            if not _plan:
                _plan.append(_faults.Plan(_own_agent))
    return _plan[0]


if os.environ.get('CPPRUN_FAULTS'):
    _own_plan().pass_by(None, None, _faults.STARTING)
