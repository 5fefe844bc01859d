"""tools/coverage.py: counted files and thresholds."""

import json

import coverage
import pytest


def line(number, count, *branches):
    return {'line_number': number, 'count': count, 'branches': [{'count': c} for c in branches]}


@pytest.fixture
def check_limits(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage, 'REPORT', tmp_path / 'coverage.json')
    monkeypatch.setattr(coverage, 'PARTS', {'core': '', 'core/inner': ''})

    def call(files, wants_missing=False):
        names = [{'file': name, 'lines': lines} for name, lines in files.items()]
        coverage.REPORT.write_text(json.dumps({'files': names}))
        return coverage.check_limits(wants_missing)

    return call


def test_sufficient_coverage_passes(check_limits):
    assert check_limits({'core/a.cpp': [line(n, 1, 1, 1) for n in range(19)] + [line(99, 0)]}) == 0


def test_too_few_lines_or_branches_fail(check_limits, capsys):
    assert check_limits({'core/a.cpp': [line(n, 1) for n in range(9)] + [line(9, 0)]}) == 1
    assert check_limits({'core/a.cpp': [line(n, 1, 1, n % 5) for n in range(20)]}) == 0
    assert check_limits({'core/a.cpp': [line(n, 1, 1, n % 4) for n in range(20)]}) == 1
    assert 'below 95 % of lines or 90 % of branches: core' in capsys.readouterr().out


def test_each_part_is_checked_separately(check_limits, capsys):
    assert check_limits({'core/a.cpp': [line(1, 1)] * 99, 'core/inner/b.cpp': [line(1, 0)]}) == 1
    assert capsys.readouterr().out.endswith('branches: core/inner\n')


def test_instances_of_a_template_are_one_line(check_limits):
    assert check_limits({'core/a.hpp': [line(1, 1, 1, 0), line(1, 0, 0, 1)]}) == 0


def test_missing_lines_are_printed(check_limits, capsys):
    check_limits({'core/a.cpp': [line(1, 1, 1, 0), line(2, 0)]}, wants_missing=True)
    text = capsys.readouterr().out
    assert 'never reached: 2' in text
    assert 'not both ways: 1' in text
