"""The pages of docs/reference have what the programs have: commands, options, names, variables."""

import re

import pytest
from cpprunctl import output_of
from launches import ROOT, skip_unless_built

REFERENCE = ROOT / 'docs/reference'
PAGE = (REFERENCE / 'cpprunctl.md').read_text()
ROWS = {
    re.match(r'[a-z-]+(?: [a-z-]+)?(?=[ `\[]|$)', row[0])[0].strip(): row[1]
    for row in re.findall(r'^\| `([^`]+)` \|(.*)\|$', PAGE, re.M)
}
# Variables between parts of cpprun and its tests, and a key of a file; not for users.
INTERNAL = {
    'CPPRUN_CHAOS_SEED',  # docs/reference/faults.md
    'CPPRUN_FAULT_ACCOUNT',
    'CPPRUN_FORMAT',
    'CPPRUN_NCCL_PLUGIN',
    'CPPRUN_PRELOAD_ROOM',
}
ADMIN_COMMANDS = ('restart', 'drain', 'scale', 'exclude', 'readmit', 'stop')
COMMON = {'help', 'endpoint', 'secret-file', 'tls-cert', 'tls-key', 'tls-ca'}  # in a sentence


def help_of(*args):
    skip_unless_built()
    return output_of(*args, '--help')


def commands(text):
    """The names that stand alone at the start of an indented line, with their descriptions."""
    return re.findall(r'^  ([a-z][a-z-]*)  +[A-Z]', text, re.M)


def test_each_command_has_a_row():
    found = commands(help_of())
    assert len(found) > 15
    wanted = []
    for command in found:
        below = commands(help_of(command))
        wanted += [f'{command} {name}' for name in below] or [command]
    assert sorted(ROWS) == sorted(wanted)


@pytest.mark.parametrize('command', sorted(ROWS))
def test_each_option_is_in_the_row_of_its_command(command):
    options = set(re.findall(r'--([a-z-]+)', help_of(*command.split()).split('Options:')[-1]))
    options -= COMMON if command in ADMIN_COMMANDS else {'help'}
    row = set(re.findall(r'--([a-z-]+)', ROWS[command]))
    assert options - row == set(), command
    assert row - options - COMMON == set(), command


def test_each_public_name_of_cpprun_worker_is_on_its_page():
    text = (ROOT / 'worker_sdk/python/cpprun_worker/__init__.py').read_text()
    names = re.findall(r'^def ([a-z]\w*)', text, re.M) + ['Snapshot', 'FaultError']
    names += ['elastic', 'HealthCheckError', 'RegroupError']
    for constants in re.findall(r'^([A-Z_]{4,}(?:, [A-Z_]+)*) = ', text, re.M):
        names += constants.split(', ')
    page = (REFERENCE / 'cpprun_worker.md').read_text()
    assert len(names) > 15
    assert [name for name in names if not re.search(rf'`{name}[`(]', page)] == []


def test_each_variable_of_the_launcher_is_on_its_page():
    page = (REFERENCE / 'environment.md').read_text()
    folders = ('launcher', 'agent', 'common')
    files = [file for folder in folders for file in (ROOT / folder).rglob('*.cpp')]
    found = set()
    for file in files:
        found |= set(re.findall(r'"(CPPRUN_[A-Z_]+)"', file.read_text()))
    assert len(found) > 8
    assert sorted(name for name in found - INTERNAL if f'`{name}`' not in page) == []
