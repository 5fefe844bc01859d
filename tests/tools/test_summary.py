"""tools/summary.py reads what pytest, ctest and gtest write."""

import subprocess
import sys

import summary

PYTEST = """<testsuites><testsuite>
<testcase classname="tests.a" name="good"/>
<testcase classname="tests.a" name="bad"><failure message="m">text</failure></testcase>
<testcase classname="tests.a" name="left"><skipped message="no network"/></testcase>
</testsuite></testsuites>"""
CTEST = """<testsuite>
<testcase name="Unit.Good" classname="Unit.Good" status="run"><system-out/></testcase>
<testcase name="Unit.Bad" classname="Unit.Bad" status="fail"><failure message=""/></testcase>
<testcase name="Unit.Left" classname="Unit.Left" status="notrun"><skipped message="SKIP_REGULAR"/>
<system-out>[ RUN      ] Unit.Left
a_test.cpp:3: Skipped
needs root

[  SKIPPED ] Unit.Left (0 ms)</system-out></testcase>
</testsuite>"""
GTEST = """<testsuites><testsuite>
<testcase name="Good" classname="Unit" status="run" result="completed"/>
<testcase name="Bad" classname="Unit" status="run"><failure message="m"/></testcase>
<testcase name="Left" classname="Unit" status="run" result="skipped">
<skipped message="/a/b_test.cpp:3&#x0A;needs root&#x0A;"/></testcase>
</testsuite></testsuites>"""


def run(folder, *stages):
    command = [sys.executable, summary.__file__, str(folder), *stages]
    return subprocess.run(command, capture_output=True, text=True)


def test_adds_up_and_lists_reasons(tmp_path):
    (tmp_path / 'e2e.xml').write_text(PYTEST)
    (tmp_path / 'check.xml').write_text(CTEST)
    done = run(tmp_path)
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == '2 passed, 2 failed, 2 skipped'
    assert '1 x no network: e2e: tests.a::left' in done.stdout
    assert '1 x needs root: check: Unit.Left' in done.stdout
    assert 'check: Unit.Bad' in done.stdout


def test_reads_the_reports_of_gtest_programs(tmp_path):
    (tmp_path / 'check.unit_tests.0.xml').write_text(GTEST)
    done = run(tmp_path, 'check')
    assert done.stdout.splitlines()[-1] == '1 passed, 1 failed, 1 skipped'
    assert '1 x needs root: check.unit_tests.0: Unit::Left' in done.stdout


def test_failed_stage_counts_unless_its_tests_did(tmp_path):
    (tmp_path / 'check.xml').write_text(CTEST)
    assert '1 passed, 2 failed, 1 skipped' in run(tmp_path, 'check', 'style').stdout


def test_counts_tests_that_were_left_out(tmp_path):
    (tmp_path / 'e2e.left_out').write_text('--slow tests/a.py::test_b\n--all tests/a.py::test_c\n')
    (tmp_path / 'labs.left_out').write_text('--slow tests/labs/test_a.py::test_b[x y]\n')
    done = run(tmp_path)
    assert done.returncode == 0
    assert '2 x tools/test.sh --slow runs it' in done.stdout
    assert '1 x tools/test.sh --all runs it' in done.stdout


def test_nothing_failed(tmp_path):
    (tmp_path / 'a.xml').write_text('<testsuite><testcase name="x" classname="x"/></testsuite>')
    done = run(tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, '1 passed, 0 failed, 0 skipped')


def test_unreadable_file_is_a_failure(tmp_path):
    (tmp_path / 'a.xml').write_text('<testsuite>')
    assert '0 passed, 1 failed, 0 skipped' in run(tmp_path).stdout
