"""The acceptance commands of the worker SDK's examples; sdk_commands.py prints them as a table."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import sdk_commands


@pytest.fixture(autouse=True)
def built():
    if not (sdk_commands.BIN / 'ex_six_steps').exists():
        pytest.skip('the C++ examples are not built')


@pytest.mark.parametrize('row', sdk_commands.ROWS, ids=lambda row: row.id)
def test_row(row, tmp_path):
    reason = sdk_commands.reason_to_skip(row)
    if reason:
        pytest.skip(reason)
    differs = sdk_commands.run(row, tmp_path)
    assert not differs, f'{row.command}\n{differs}'


def test_row_names_are_unique():
    names = [row.id for row in sdk_commands.ROWS]
    assert sorted(set(names)) == sorted(names)
