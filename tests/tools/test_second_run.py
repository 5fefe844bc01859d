"""tools/second_run.py with programs that behave like GoogleTest's."""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

TOOL = pathlib.Path(__file__).resolve().parents[2] / 'tools' / 'second_run.py'
RESULTS = """<testsuites><testsuite name="A">
<testcase name="Fails" classname="A"><failure message="wrong"/></testcase>
<testcase name="Passes" classname="A"/>
</testsuite></testsuites>"""


@pytest.fixture
def second_run(tmp_path):
    """Runs the tool after a first run with this output; the program's second run ends so."""

    def run(first_output, status):
        program = tmp_path / 'tests'
        program.write_text(f'#!/bin/sh\necho "$@" >{tmp_path}/arguments\nexit {status}\n')
        program.chmod(0o755)
        (tmp_path / 'report.log').write_text(first_output)
        (tmp_path / 'report.xml').write_text(RESULTS)
        return subprocess.run(
            [sys.executable, TOOL, program, tmp_path / 'report'],
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def failures(folder):
    return list(ElementTree.parse(folder / 'report.xml').iter('failure'))


def test_a_test_that_passes_then_is_named(second_run, tmp_path):
    done = second_run('[  FAILED  ] A.Fails (3 ms)\n[  FAILED  ] A.Fails\n', 0)
    assert done.returncode == 0, done.stderr
    assert 'passed only at the second run: A.Fails' in done.stdout
    assert (tmp_path / 'arguments').read_text() == '--gtest_filter=A.Fails\n'
    assert not failures(tmp_path)


def test_a_test_that_fails_again_fails(second_run, tmp_path):
    assert second_run('[  FAILED  ] A.Fails (3 ms)\n', 1).returncode == 1
    assert len(failures(tmp_path)) == 1


@pytest.mark.parametrize(
    'output',
    ['Segmentation fault\n', ''.join(f'[  FAILED  ] A.Test{n} (1 ms)\n' for n in range(4))],
    ids=['crash', 'many'],
)
def test_crashes_and_many_failures_get_no_second_run(second_run, tmp_path, output):
    assert second_run(output, 0).returncode == 1
    assert not (tmp_path / 'arguments').exists()
