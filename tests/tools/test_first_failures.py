"""tests/support/first_failures.py, with a test that passes at its second run."""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAILS_ONCE = """
def test_it():
    mark = __import__('pathlib').Path(__file__).with_name('mark')
    first = not mark.exists()
    mark.touch()
    assert not first, 'the reason'
"""


def test_the_reason_of_the_first_failure_is_printed(tmp_path):
    (tmp_path / 'test_once.py').write_text(FAILS_ONCE)
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-n', '1', '-p', 'no:cacheprovider',
         '-p', 'tests.support.first_failures', '--reruns', '1', tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert 'first run of ' in done.stdout and 'AssertionError: the reason' in done.stdout
