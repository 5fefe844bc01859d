"""The blocks of the pages of docs/, without running one: tests/e2e/test_pages.py runs them."""

import pathlib

import doc_blocks
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGES = doc_blocks.pages(ROOT / 'docs')


@pytest.mark.parametrize('name', [name for name in PAGES if name.startswith('tutorials/')])
def test_each_block_of_a_tutorial_states_whether_it_is_tested(name):
    blocks = [block for block in PAGES[name] if block.is_shell]
    assert [block.line for block in blocks if block.mark is None] == []


@pytest.mark.parametrize('name', PAGES)
def test_shown_files_are_as_they_are(name):
    for block in PAGES[name]:
        mark = block.mark or ''
        if mark.startswith('is the file: '):
            assert block.body == (ROOT / mark.removeprefix('is the file: ')).read_text()
        if mark.startswith('is in the file: '):
            assert block.body in (ROOT / mark.removeprefix('is in the file: ')).read_text()
