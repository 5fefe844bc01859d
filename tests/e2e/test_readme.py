"""Runs the commands of README.md: tests/support/doc_blocks.py has the marks of its blocks.

Each block runs by itself, in a copy of the project's layout, or with `<!-- test: root -->` in the
project itself.
"""

import re

import doc_blocks
import doc_runner
import pytest
from conftest import ROOT

BLOCKS = [block for block in doc_blocks.blocks(ROOT / 'README.md') if block.is_shell]
LINES = 150  # what a newcomer reads; everything else is in docs/
LIMIT = 600  # the build, in a fresh tree


def test_each_block_states_whether_it_is_tested():
    assert [block.line for block in BLOCKS if block.mark is None] == []


@pytest.mark.timeout(LIMIT + 10)
@pytest.mark.parametrize(
    'block', [pytest.param(b, id=f'line-{b.line}') for b in BLOCKS if b.is_tested]
)
def test_block(cpprun, tmp_path, block):
    assert block.mark in ('test', 'test: root'), block.mark
    if block.mark == 'test':
        doc_runner.lay_out(tmp_path)
    doc_runner.finish(block, doc_runner.start(cpprun, block), LIMIT)


def test_readme_has_commands_and_is_short():
    assert len(BLOCKS) >= 3
    assert len((ROOT / 'README.md').read_text().splitlines()) <= LINES


TABLES = (ROOT / 'docs/how-to/migrate.md').read_text()
SWITCHERS = re.findall(r'`cpprun (.*?)` \|$', TABLES, re.M)


@pytest.mark.parametrize('words', SWITCHERS)
def test_other_launchers_commands_are_understood(cpprun, tmp_path, words):
    (tmp_path / 't.py').touch()
    (tmp_path / 'hosts').write_text('a slots=4\nb slots=4\nc slots=4\n')
    (tmp_path / 'train').write_text('#!/bin/sh\n')
    (tmp_path / 'train').chmod(0o755)
    code, output = cpprun.run('cpprunctl', 'explain', *words.split())
    assert code == 0 and output.startswith('command '), output


def test_tables_of_other_launchers_were_found():
    assert len(SWITCHERS) == 14
