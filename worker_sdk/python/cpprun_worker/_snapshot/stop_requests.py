"""Stop requests: maybe_save() saves and ends the program when the agent asks the job to stop.

The request reaches the ranks at different moments. So they agree on the step at which they stop, in
a small all-reduce about once a second, at steps that all ranks know.
"""

from __future__ import annotations

import time

import cpprun_worker

from .schedule import StepClock

_LOOK_S = 1.0
_OF_AGENT, _OF_SCRIPT = 1, 2


class StopRequests:
    def __init__(self, ranks):
        self._ranks = ranks
        self._serves = None  # not known before the first step
        self._clock = StepClock()
        self._next_look = 0

    def restart(self):
        """Steps begin anew."""
        self._next_look = 0

    def is_agreed(self, step):
        """Whether this program shall save at this step and end. For all ranks, after each step."""
        if self._serves is None:
            self._serves = self._is_served()
        if not self._serves:
            return False
        cpprun_worker._set_can_save(True)
        if step < self._next_look:
            return False
        wanted = cpprun_worker.should_stop()
        if self._ranks.world == 1:
            return wanted
        next_look = self._clock.step_after(step, time.monotonic(), _LOOK_S)
        # Rank 0's clock counts.
        own = int(wanted), next_look if self._ranks.is_first else 0
        wanted, self._next_look = self._ranks.highest(own)
        return bool(wanted)

    def _is_served(self):
        """A script that has called enable_graceful_stop() handles requests itself. The ranks agree,
        since a rank that can't reach its agent must take part as well."""
        of_script = _OF_SCRIPT if cpprun_worker._script_stops() else 0
        (found,) = self._ranks.highest([of_script or int(cpprun_worker.has_agent())])
        return found == _OF_AGENT

    def pause(self):
        """No step follows soon: until the next one a request ends the program by SIGTERM."""
        if self._serves:
            cpprun_worker._set_can_save(False)
