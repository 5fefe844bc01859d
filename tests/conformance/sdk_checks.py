"""A row of the table of acceptance commands, and the checks of its output."""

import collections
import re

Row = collections.namedtuple('Row', 'id command check needs', defaults=('',))


def prints(*lines):
    """The output has exactly these lines, in any order."""

    def check(out):
        return sorted(out.splitlines()) == sorted(lines)

    check.wanted = 'exactly ' + ' | '.join(lines)
    return check


def has(pattern, times=None):
    """The pattern is in the output, `count` times if given."""

    def check(out):
        found = re.findall(pattern, out, re.M)
        return bool(found) if times is None else len(found) == times

    check.wanted = f'{pattern!r}' + ('' if times is None else f' {times} times')
    return check


def both(*checks):
    def check(out):
        return all(one(out) for one in checks)

    check.wanted = ' and '.join(one.wanted for one in checks)
    return check


def same_lines(count):
    def check(out):
        lines = out.splitlines()
        return len(lines) == count and len(set(lines)) == 1 and lines[0] != ''

    check.wanted = f'{count} equal lines'
    return check


def near_truth(out):
    numbers = re.search(r'parameters: \[(.*)\]', out)
    found = [float(word) for word in numbers[1].split(',')] if numbers else []
    return len(found) == 3 and all(abs(a - b) < 0.05 for a, b in zip(found, (-2, 3.4, 4.2)))


near_truth.wanted = 'parameters near -2, 3.4, 4.2'


def ctest(pattern):
    """The tests whose names match: there must be some, and they must pass."""
    return f'ctest --test-dir $BIN/.. -R {pattern} --no-tests=error >$T/ctest; echo $?'
