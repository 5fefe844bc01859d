"""Runs the commands of README.md.

Every ```console and ```sh block has a comment above it: `<!-- test -->` (run in a copy of the
project's layout), `<!-- test: root -->` (run in the project itself) or `<!-- no test: why -->`.
Commands must end with 0; each line of output that a console block shows must appear, with any
digits where it shows digits and anything where it shows an ellipsis.
"""

import re

import pytest
from conftest import BIN, ROOT

README = (ROOT / 'README.md').read_text() if (ROOT / 'README.md').is_file() else ''
BLOCK = re.compile(
    r'^(?:<!-- (?P<mark>.*?) -->\n)?```(?:console|sh|bash)\n(?P<body>.*?)^```$', re.M | re.S
)
BLOCKS = [
    (README.count('\n', 0, m.start()) + 1, m['mark'], m['body']) for m in BLOCK.finditer(README)
]


def commands_and_output(body):
    """A shell script, and the lines that its output must contain."""
    script, shown = [], []
    for line in body.splitlines():
        is_more = script and script[-1].endswith('\\')
        if line.startswith('$ ') or is_more:
            script.append(line.removeprefix('$ ').removeprefix('> '))
        elif line.strip() not in ('', '…'):
            shown.append(line)
    return '\n'.join(script), shown


def pattern(line):
    parts = [re.escape(part) for part in line.split('…')]
    return re.sub(r'\d+', r'\\d+', '.*'.join(parts))


def is_tested(mark):
    return mark is not None and not mark.startswith('no test: ')


LIMIT = 600  # the demo builds everything in a fresh tree


def test_each_block_says_whether_it_is_tested():
    assert [line for line, mark, _ in BLOCKS if mark is None] == []


@pytest.mark.timeout(LIMIT + 10)
@pytest.mark.parametrize(
    'mark, body',
    [pytest.param(mark, body, id=f'line-{line}') for line, mark, body in BLOCKS if is_tested(mark)],
)
def test_block(cpprun, tmp_path, mark, body):
    assert mark in ('test', 'test: root'), mark
    script, shown = commands_and_output(body) if body.startswith('$ ') else (body, [])
    if mark == 'test: root':
        cpprun.folder = ROOT
    else:
        (tmp_path / 'build' / 'release').mkdir(parents=True)
        (tmp_path / 'build' / 'release' / 'bin').symlink_to(BIN)
        for name in ('examples', 'tools', 'worker_sdk', '.venv'):
            (tmp_path / name).symlink_to(ROOT / name)
    code, output = cpprun.run('bash', '-euo', 'pipefail', '-c', script, seconds=LIMIT)
    assert code == 0, output
    for text in shown:
        assert re.search(f'^{pattern(text)}$', output, re.M), f'no {text!r} in:\n{output}'


def test_readme_has_commands():
    assert len(BLOCKS) >= 3


TABLE = README.split('## Coming from another launcher')[-1]
SWITCHERS = re.findall(r'`cpprun (.*?)` \|$', TABLE, re.M)


@pytest.mark.parametrize('words', SWITCHERS)
def test_other_launchers_commands_are_understood(cpprun, tmp_path, words):
    (tmp_path / 't.py').touch()
    (tmp_path / 'train').write_text('#!/bin/sh\n')
    (tmp_path / 'train').chmod(0o755)
    code, output = cpprun.run('cpprunctl', 'explain', *words.split())
    assert code == 0 and output.startswith('would run '), output


def test_table_of_other_launchers_was_found():
    assert len(SWITCHERS) == 11
