"""Measurements: rows of samples by subject, each with its goal."""

import dataclasses
import math
import statistics

FLOOR, OURS, THEIRS = 'floor', 'cpprun', 'torchrun'


@dataclasses.dataclass(frozen=True)
class Goal:
    """A limit: the floor or torch's value, times a factor, plus a constant."""

    plus: float = 0
    floor: float = 0
    theirs: float = 0
    at_least: bool = False

    def words(self):
        parts = [f'{self.floor:g} × floor'] if self.floor else []
        parts += [f"{self.theirs:g} × torch's"] if self.theirs else []
        parts += [f'{self.plus:g}'] if self.plus or not parts else []
        return f'{"≥" if self.at_least else "≤"} {" + ".join(parts)}'

    def limit(self, row):
        """None if the value that it depends on was not measured."""
        total = self.plus
        for factor, subject in ((self.floor, FLOOR), (self.theirs, THEIRS)):
            if factor and not row.was_measured(subject):
                return None
            total += factor * row.median(subject) if factor else 0
        return total


class Row:
    """Samples of one quantity. A sample of None is an event that did not happen in time."""

    def __init__(self, suite, case, unit, goal):
        self.suite, self.case, self.unit, self.goal = suite, case, unit, goal
        self.samples = {}

    def add(self, subject, value):
        self.samples.setdefault(subject, []).append(value)

    def was_measured(self, subject):
        return subject in self.samples

    def median(self, subject):
        """Infinite if most samples are None."""
        return statistics.median(
            math.inf if value is None else value for value in self.samples[subject]
        )

    def ratio(self):
        """torch's value / ours; None if one of them is missing."""
        if not (self.was_measured(OURS) and self.was_measured(THEIRS)):
            return None
        ours, theirs = self.median(OURS), self.median(THEIRS)
        return theirs / ours if ours and math.isfinite(ours + theirs) else None

    def limit(self):
        return self.goal.limit(self) if self.goal else None

    def is_reached(self):
        """None if the row has no goal, or its values are missing."""
        limit = self.limit()
        if limit is None or not self.was_measured(OURS):
            return None
        value = self.median(OURS)
        return value >= limit if self.goal.at_least else value <= limit


class Rows:
    """All rows of one run, in the order of their first samples."""

    def __init__(self):
        self.by_name = {}

    def row(self, suite, case, unit, goal=None):
        return self.by_name.setdefault((suite, case), Row(suite, case, unit, goal))

    def __iter__(self):
        return iter(self.by_name.values())

    def suites(self):
        return list(dict.fromkeys(row.suite for row in self))
