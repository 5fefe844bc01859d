"""Rows as Markdown tables and as JSON."""

import math

from rows import FLOOR, OURS, THEIRS


def number(value):
    """Three significant digits; 'none' for an event that did not happen in time."""
    if value is None:
        return ''
    if not math.isfinite(value):
        return 'none'
    if value == int(value):
        return f'{value:,.0f}'
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f'{value:.{digits}f}' if digits else f'{value:,.0f}'


def cell(row, subject):
    return number(row.median(subject)) if row.was_measured(subject) else ''


def failure_summary(row):
    """'≤ 1.5 × floor + 5 = 12.1: reached'."""
    if not row.goal:
        return ''
    words, is_reached = row.goal.words(), row.is_reached()
    if is_reached is None:
        return words
    if row.goal.floor or row.goal.theirs:
        words += f' = {number(row.limit())}'
    return f'{words}: {"reached" if is_reached else "MISSED"}'


def table(rows):
    lines = [
        '| what | unit | cpprun | torchrun | torchrun / cpprun | floor | goal |',
        '| --- | --- | ---: | ---: | ---: | ---: | --- |',
    ]
    for row in rows:
        cells = [row.case, row.unit, *(cell(row, subject) for subject in (OURS, THEIRS))]
        cells += [number(row.ratio()), cell(row, FLOOR), failure_summary(row)]
        lines.append('| ' + ' | '.join(cells) + ' |')
    return '\n'.join(lines)


def markdown(rows, about):
    """All tables, preceded by a line that describes the run."""
    parts = [about]
    for suite in rows.suites():
        parts.append(f'**{suite}**\n\n' + table(row for row in rows if row.suite == suite))
    return '\n\n'.join(parts) + '\n'


def as_json(rows):
    return [
        {
            'suite': row.suite,
            'case': row.case,
            'unit': row.unit,
            'samples': row.samples,
            'goal': row.goal and row.goal.words(),
            'limit': row.limit() if row.limit() is None or math.isfinite(row.limit()) else None,
            'reached': row.is_reached(),
        }
        for row in rows
    ]
