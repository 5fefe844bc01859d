"""What a job has gone through, as far as this process knows, for the intervals of maybe_save(). A
process outlives its Snapshots: each round makes its own. C++ counterpart:
worker_sdk/cpprun/snapshot/job_history.hpp.
"""

import time

from . import _environment


def _restarts():
    return _environment.number('TORCHELASTIC_RESTART_COUNT', 0)


class JobHistory:
    """`rollbacks`: restarts after which the job went back to a snapshot. They are the failures that
    'auto' expects to come again: what a survivor shares, a save need not have kept. For a new
    process each earlier restart was one, until a survivor sends it more."""

    def __init__(self):
        self.rollbacks = self._classified = _restarts()
        self._seconds_before = 0.0  # of training, in earlier processes
        self._started_at = time.monotonic()
        self._saved_at = {}  # by the owner of the saves, as seconds()

    def seconds(self):
        """Of training, in all runs."""
        return self._seconds_before + time.monotonic() - self._started_at

    def saved_at(self, owner):
        """When its last save began, as seconds(); before the first one, when it was first asked."""
        return self._saved_at.setdefault(owner, self.seconds())

    def begin_save(self, owner):
        """Returns seconds()."""
        self._saved_at[owner] = self.seconds()
        return self._saved_at[owner]

    def resume(self, owner, seconds):
        """The job continues from a snapshot, taken after so many seconds of training."""
        restarts = _restarts()
        self.rollbacks += restarts - self._classified
        self._classified = restarts
        self._set_seconds(seconds)
        self._saved_at[owner] = seconds

    def record(self):
        """For keep_state() of other processes."""
        return self.rollbacks, self.seconds(), self._saved_at

    def keep_state(self, record):
        """The job continues with the state of a survivor, which has this record."""
        self.rollbacks, seconds, saved_at = record
        self._classified = _restarts()
        self._set_seconds(seconds)
        self._saved_at.update(saved_at)

    def _set_seconds(self, seconds):
        self._seconds_before = seconds
        self._started_at = time.monotonic()


_of_process = None


def of_process():
    """First called before the process enters a second round."""
    global _of_process
    if _of_process is None:
        _of_process = JobHistory()
    return _of_process
