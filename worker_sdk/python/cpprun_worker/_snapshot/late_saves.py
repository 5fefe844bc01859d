"""Saves for a framework whose loop can't resume behind every step: some are followed by an
evaluation or the end of an epoch, which a resumed run would leave out.
"""

from __future__ import annotations

import sys

from .schedule import checked_every

_MISSED_MOST = 100  # due saves without a step that allows one


class LateSaves:
    """A save that is due at a step that allows none happens after the next step that allows one, or
    at the end of the training."""

    def __init__(self, snapshot, every, disk_every):
        self._snapshot = snapshot
        self._every = checked_every('every', every)
        self._disk_every = checked_every('disk_every', disk_every)
        self._is_due = False
        self._missed = 0

    def on_step(self, step: int, is_allowed: bool) -> None:
        """For all ranks, after each step; they agree on `is_allowed`."""
        if not is_allowed:
            self._is_due |= isinstance(self._every, int) and step % self._every == 0
            self._missed += 1
            if self._missed == _MISSED_MOST:
                sys.stderr.write(
                    'cpprun: no snapshot is saved, because an evaluation or the end of an epoch '
                    'follows each step; this message appears once\n'
                )
            return
        self._missed = 0
        if self._is_due:
            self._is_due = False
            self._snapshot._save_due(step, self._disk_every)
        else:
            self._snapshot.maybe_save(step, self._every, self._disk_every)

    def finish(self, step: int) -> None:
        """For all ranks, after the last step: the state is on disk then, if it can be."""
        if step > 0:
            self._snapshot._save_last(step)
