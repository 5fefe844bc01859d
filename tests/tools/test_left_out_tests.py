"""The plugin that leaves out tests of other runs, and the list of slow tests."""

import re
import shutil
import subprocess
import sys

import left_out_tests
import pytest

TESTS = """import pytest
@pytest.mark.parametrize('n', [1, 2])
def test_varied(n): pass
def test_varied_too(): pass
"""


@pytest.fixture
def project(tmp_path):
    """Runs pytest there with a list of slow tests; returns the names that ran, and those that were
    left out."""
    support = tmp_path / 'tests' / 'support'
    support.mkdir(parents=True)
    shutil.copy(left_out_tests.__file__, support)
    for folder in ('one', 'other'):
        (tmp_path / 'tests' / folder).mkdir()
        (tmp_path / 'tests' / folder / f'test_{folder}.py').write_text(TESTS)

    def run(slow, *arguments, **environment):
        (tmp_path / 'tests' / 'slow.txt').write_text(slow)
        report = tmp_path / 'report.xml'
        command = [sys.executable, '-m', 'pytest', '-p', 'tests.support.left_out_tests', '-v']
        done = subprocess.run(
            [*command, '-p', 'no:cacheprovider', f'--junit-xml={report}', 'tests', *arguments],
            cwd=tmp_path,
            env={'PATH': '/usr/bin:/bin', **environment},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode in (0, 5), done.stdout + done.stderr
        left_out = report.with_suffix('.left_out')
        names = left_out.read_text().splitlines() if left_out.exists() else []
        return sorted(re.findall(r'testcase classname="\S*?(\w+)" name="([^"]+)"',
                                 report.read_text())), names

    return run


OTHER = [('test_other', name) for name in ('test_varied[1]', 'test_varied[2]', 'test_varied_too')]
ONE = [('test_one', name) for _, name in OTHER]


@pytest.mark.parametrize('arguments', [(), ('-n', '2')])
def test_variant(project, arguments):
    name = 'tests/one/test_one.py::test_varied[2]'
    assert project(name, *arguments) == ([ONE[0], ONE[2], *OTHER], [f'--slow {name}'])


def test_all_variants_of_a_test(project):
    ran, left_out = project('tests/one/test_one.py::test_varied  # why')
    assert ran == [ONE[2], *OTHER] and len(left_out) == 2


@pytest.mark.parametrize('entry', ['tests/one', 'tests/one/test_one.py'])
def test_file_or_folder(project, entry):
    ran, left_out = project(f'# some\n{entry}\n')
    assert ran == OTHER and len(left_out) == 3


def test_everything_runs_on_request(project):
    assert project('tests/one', CPPRUN_SLOW='yes') == (ONE + OTHER, [])


MARKED = '''import pytest
for_all = pytest.mark.skipif(True, reason='only with tools/test.sh --all')
for_stage = pytest.mark.skipif(True, reason='only with tools/test.sh newest: needs another torch')
holds_not = pytest.mark.skipif(False, reason='only with tools/test.sh --all')
other = pytest.mark.skipif(True, reason='no GPU')
@for_all
def test_long(): pass
@for_stage
def test_newest(): pass
@holds_not
def test_runs(): pass
@other
def test_skipped(): pass
'''


def test_marked_tests(project, tmp_path):
    path = 'tests/other/test_other.py'
    (tmp_path / path).write_text(MARKED)
    ran, left_out = project('tests/one', CPPRUN_SLOW='yes')
    assert ran == [*ONE, ('test_other', 'test_runs'), ('test_other', 'test_skipped')]
    assert left_out == [f'--all {path}::test_long', f'newest {path}::test_newest']


def test_each_entry_of_the_list_exists():
    entries = left_out_tests.entries()
    assert entries == sorted(set(entries))
    for entry in entries:
        place, *names = entry.split('::')
        path = left_out_tests.ROOT / place
        assert path.is_file() if names else path.exists(), entry
        for name in names:
            name = name.partition('[')[0]
            assert re.search(rf'(?m)^\s*(def|class) {name}\b', path.read_text()), entry
