"""Real programs, started by the launcher under test."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from launches import BIN, ROOT, Launches, skip_unless_built

EXAMPLES = ROOT / 'examples' / 'python'


@pytest.fixture
def launches(tmp_path):
    """For programs that need no launcher."""
    made = Launches(tmp_path)
    yield made
    made.close()


@pytest.fixture
def cpprun(launches):
    """The same, where cpprun is built."""
    skip_unless_built()
    return launches


def pytest_report_header(config):
    return f'cpprun from {BIN}, python {sys.version.split()[0]}'
