"""The dashboard in a real browser: Debian's Chromium, which `tools/deps.sh --browser` installs.

With CPPRUN_PICTURES=FOLDER the tests keep their pictures there.
"""

import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tests/integration'))
import browser as driver
import feed as simulated
from nodes import BIN, cluster  # noqa: F401


@pytest.fixture
def browser(tmp_path):
    if driver.MISSING:
        pytest.skip(f'{driver.MISSING} is not installed: tools/deps.sh --browser')
    made = driver.Browser(tmp_path)
    try:
        yield made
        assert made.complaints() == []
    finally:
        made.close()


@pytest.fixture(scope='session')
def page():
    """The page that the build made."""
    made = list(BIN.parent.glob('rendezvous/server/dashboard_page.cpp.html'))
    if not made:
        pytest.skip(f'no dashboard was built beside {BIN}')
    return made[0].read_bytes()


@pytest.fixture
def feed(page):
    made = simulated.Feed(page)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def pictures(tmp_path):
    folder = pathlib.Path(os.environ.get('CPPRUN_PICTURES', tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
