"""The mark of tests that take minutes: only `tools/test.sh --all` runs them."""

import os

import pytest

RUN_LONG = bool(os.environ.get('CPPRUN_ALL'))
long = pytest.mark.skipif(not RUN_LONG, reason='only with tools/test.sh --all')
