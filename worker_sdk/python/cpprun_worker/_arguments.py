"""Checks of arguments, the same with and without an agent, so that mistakes show early."""

from __future__ import annotations

import operator
import os
from typing import SupportsIndex

INT64 = range(-(2**63), 2**63)  # range of numbers in messages and in the shared page
STEPS = range(2**63)  # numbers of finished steps
COUNTS = range(1, 2**63)


def whole_number(name: str, value: SupportsIndex, within: range = INT64) -> int:
    """The value of an argument. TypeError, ValueError: it is none of `within`."""
    try:
        number = operator.index(value)
    except TypeError:
        wrong = f'{name} must be an integer, not {type(value).__name__}: {value!r}'
        raise TypeError(wrong) from None
    if number not in within:
        raise ValueError(f'{name} is {number}; wanted is {within[0]} to {within[-1]}')
    return number


def absolute_path(value: str | os.PathLike[str]) -> str:
    """The value of an argument `path`. TypeError: it is none."""
    try:
        return os.path.abspath(os.fspath(value))
    except TypeError:
        wrong = f'path must be a string or a path, not {type(value).__name__}: {value!r}'
        raise TypeError(wrong) from None
