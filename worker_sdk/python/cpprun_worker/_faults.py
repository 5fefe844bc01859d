"""Fault injection: parses CPPRUN_FAULTS and injects its faults. cpprun/worker/faults.hpp, the C++
counterpart, describes it in more detail.
"""

import os
import signal
import sys
import time

from . import _environment

KINDS = ('kill', 'stop', 'exit', 'throw', 'slow', 'ask', 'report')
NUMBERS = ('rank', 'node', 'step', 'epoch', 'attempt', 'round', 'fault')
PHASES = ('starting', 'training', 'saving')
STARTING, TRAINING, SAVING = PHASES
TRAINING_PHASE = 2  # the phase of heartbeats in training
# The number that only one kind takes, and its maximum: the kernel keeps 8 bits of an exit code, and
# a program that sleeps for more than a day looks hung. Equal to those of the C++ counterpart.
OWN_NUMBERS = {'exit': ('code', 255), 'slow': ('ms', 86_400_000)}
NUMBER_MAX = 2**63 - 1


KNOWN = (
    'rank, node, step, epoch, attempt, round (numbers), phase (starting, training, saving), '
    'nor code (0 to 255) of an exit, nor ms (to a day) of a slow'
)


class FaultError(RuntimeError):
    """Raised by the fault `throw`."""


class Fault:
    def __init__(self, text, whole):
        self.text = text
        self._whole = whole  # the value of CPPRUN_FAULTS, for error messages
        self.kind, _, rest = text.partition(':')
        self.numbers = {}
        self.phase = None
        self.has_happened = False
        if self.kind not in KINDS:
            raise ValueError(self._wrong(f'{self.kind!r} is none of {", ".join(KINDS[:5])}'))
        for part in rest.split(',') if rest else ():
            self._put(*part.partition('=')[::2])

    def _wrong(self, why):
        example = 'an example is kill:rank=1,epoch=2,attempt=0'
        return f"CPPRUN_FAULTS is '{self._whole}': {why}; {example}"

    def _put(self, name, value):
        own, most = OWN_NUMBERS.get(self.kind, (None, 0))
        most = most if name == own else NUMBER_MAX
        if name == 'phase' and value in PHASES:
            self.phase = value
        elif name in NUMBERS + (own,) and _is_number(value, most):
            self.numbers[name] = int(value)
        else:
            raise ValueError(self._wrong(f"'{name}={value}' is none of {KNOWN}"))

    @property
    def number(self):
        """Number in the job's fault plan; None for a fault that the user set in CPPRUN_FAULTS."""
        return self.numbers.get('fault')

    def fits(self, place, phase):
        if self.kind == 'report':
            return False
        if self.phase is None:
            if phase == SAVING or (phase == STARTING and self.number is not None):
                return False
        elif self.phase != phase:
            return False
        wanted = {name: n for name, n in self.numbers.items() if name in place}
        return all(place[name] == n for name, n in wanted.items())

    def inject(self, where):
        if self.kind == 'ask':
            return  # the agent injects and logs it
        print(f'cpprun: fault {self.text} at {where}', file=sys.stderr, flush=True)
        sys.stdout.flush()
        if self.kind == 'kill':
            os.kill(os.getpid(), signal.SIGKILL)
        elif self.kind == 'stop':
            os.kill(os.getpid(), signal.SIGSTOP)
        elif self.kind == 'exit':
            os._exit(self.numbers.get('code', 1))
        elif self.kind == 'throw':
            raise FaultError(f'fault {self.text} at {where}')
        elif self.kind == 'slow':
            time.sleep(self.numbers.get('ms', 0) / 1000)


def _is_number(text, most):
    # Checks the length first, because int() raises ValueError for thousands of digits.
    return text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= most


class Plan:
    """The faults of this process. `agent` returns the agent, or None."""

    def __init__(self, agent):
        text = os.environ.get('CPPRUN_FAULTS', '')
        self._agent = agent
        self._faults = [Fault(one, text) for one in text.split(';') if one]
        self._reports_progress = any(fault.kind == 'report' for fault in self._faults)
        self._has_sent_begin = False

    def inject_due(self, epoch, step, phase):
        if not self._faults:
            return
        place = {
            'rank': _environment.number('RANK', 0),
            'node': _environment.number('GROUP_RANK', 0),
            'attempt': _environment.number('TORCHELASTIC_RESTART_COUNT', 0),
            'round': _environment.number('CPPRUN_ROUND', 0),
            'epoch': epoch,
            'step': step,
        }
        if phase == TRAINING and self._reports_progress:
            self._report_progress(epoch, step)
        for fault in self._faults:
            if fault.fits(place, phase) and self._is_due(fault, epoch, step):
                fault.inject(_describe(place))

    def _is_due(self, fault, epoch, step):
        if fault.number is not None:
            agent = self._agent()
            return agent is not None and agent.request_fault_permit(fault.number, epoch, step)
        had_happened, fault.has_happened = fault.has_happened, True
        return fault.kind == 'slow' or not had_happened

    def _report_progress(self, epoch, step):
        """Sends the first place and a heartbeat for each step, to measure what a fault costs."""
        agent = self._agent()
        if agent is None or (epoch is None and step is None):
            return
        if step is not None:
            agent.beat(step, TRAINING_PHASE)
        if not self._has_sent_begin:
            self._has_sent_begin = True
            agent.send_began(epoch, step)


def _describe(place):
    text = f'rank {place["rank"]}'
    if place['epoch'] is not None:
        text += f', training epoch {place["epoch"]}'
    if place['step'] is not None:
        text += f', step {place["step"]}'
    return text
