"""When maybe_save() saves. C++ counterparts: worker_sdk/cpprun/snapshot/save_schedule.hpp,
common/goodput/save_interval.hpp.
"""

from __future__ import annotations

import math
import re

from cpprun_worker import _job_history
from cpprun_worker._arguments import COUNTS, whole_number

_INTERVAL = re.compile(r'(\d+(?:\.\d+)?)\s*(ms|s|min|h)\Z')
_UNITS = {'ms': 0.001, 's': 1, 'min': 60, 'h': 3600}
_HOUR = 3600
_UNSEEN = 4 * _HOUR  # seconds without a failure that are assumed: the first estimate
_STEPS_MOST = 10_000


def checked_every(name, every):
    """The value of `every` or `disk_every`, as maybe_save() takes them: steps, a text, or of
    `disk_every` None. ValueError, TypeError: it is none of these."""
    is_for_disk = name == 'disk_every'
    if every is None and is_for_disk:
        return None
    if not isinstance(every, str):
        return whole_number(name, every, COUNTS)
    if interval_of(every) or (every == 'auto' and not is_for_disk):
        return every
    wanted = "'30s' or '5min'" if is_for_disk else "'30s', '5min' or 'auto'"
    raise ValueError(f'{name} is {every!r}; wanted is a number of steps, {wanted}')


def interval_of(every):
    """Seconds of "30s", "5min"; None of "auto" and what is no interval."""
    match = _INTERVAL.match(every)
    return float(match[1]) * _UNITS[match[2]] if match else None


def best_interval(cost, between):
    """The interval in seconds that loses the least time (J. W. Young, 1974), if a save costs `cost`
    seconds and a rollback comes every `between` seconds."""
    return min(_HOUR, max(10 * cost, math.sqrt(2 * cost * between)))


def time_until_poll(left, interval):
    """Seconds until all ranks read the clock together again, `left` seconds before the next save:
    when it is due, but within a second, since steps may become longer. A save that is due may be
    left out, and is tried again."""
    return min(1.0, max(left, interval / 100) if left > 0 else interval / 10)


class StepClock:
    """Estimates steps from times, so that ranks, whose clocks differ, meet at the same steps."""

    def __init__(self):
        self._last = None

    def step_after(self, step, now, seconds):
        """The step so many seconds behind `step`, which is made now; at least the next one."""
        ahead = 1
        if self._last and now > self._last[1] and step > self._last[0]:
            each = (now - self._last[1]) / (step - self._last[0])
            ahead = int(min(max(seconds / each, 1), _STEPS_MOST))
        self._last = (step, now)
        return step + ahead


class Schedule:
    """`owner`: names the Snapshot, as in other rounds of the process."""

    def __init__(self, ranks, owner):
        self._ranks = ranks
        self._owner = owner
        self._history = _job_history.of_process()
        self._history.saved_at(owner)  # from now on
        self._saved_step = -1
        self._last_step = None  # of the last call of is_due()
        self._on_disk = None  # step and time of the last save that went to disk
        self._next_poll = None
        self._clock = StepClock()

    def begin(self):
        """Training begins anew."""
        self._last_step = 0

    def resume(self, step, seconds):
        self._history.resume(self._owner, seconds)
        self._saved_step = self._last_step = step
        if self._on_disk and self._on_disk[0] > step:  # it has no part in what follows
            self._on_disk = None

    def begin_save(self, step, to_disk):
        self._saved_step = step
        seconds = self._history.begin_save(self._owner)
        if to_disk:
            self._on_disk = step, seconds
        return seconds

    def is_for_disk(self, step, disk_every):
        """For all ranks, of a save that is due. The first one is, so that a folder that can't be
        written to shows at once."""
        if disk_every is None or self._on_disk is None:
            return True
        on_disk, seconds = self._on_disk
        if not isinstance(disk_every, str):
            return step - on_disk >= disk_every
        is_time = self._history.seconds() - seconds >= interval_of(disk_every)
        return bool(self._ranks.numbers_of_first((int(is_time),))[0])

    def is_due(self, step, every, pause, writing):
        """Clocks differ between ranks, steps do not: rank 0 reads its clock at steps that all ranks
        know. `pause`, `writing`: seconds of the last save."""
        # A program may call this at some steps only, such as at the end of an epoch.
        last = step - 1 if self._last_step is None else min(self._last_step, step - 1)
        self._last_step = step
        if isinstance(every, int):
            return step > 0 and step // every > last // every and step != self._saved_step
        interval = interval_of(every)
        if self._next_poll is None:  # how long a step takes is known after the next one
            self._next_poll = self._clock.step_after(step, self._history.seconds(), 0)
        if step < self._next_poll:
            return False
        now = self._history.seconds()
        if interval is None:
            between = (now + _UNSEEN) / (self._history.rollbacks + 1)
            interval = max(best_interval(pause, between), 2 * writing)
        left = interval - (now - self._history.saved_at(self._owner))
        next_poll = self._clock.step_after(step, now, time_until_poll(left, interval))
        is_time, self._next_poll = self._ranks.numbers_of_first((int(left <= 0), next_poll))
        return bool(is_time) and step != self._saved_step
