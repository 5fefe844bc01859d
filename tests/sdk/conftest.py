"""The fixture `ranks`; tests/support/sdk_ranks.py describes it."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / 'support'))
from sdk_ranks import Ranks


@pytest.fixture
def ranks(tmp_path):
    return Ranks(tmp_path)
