"""Follows the pages of docs/ that have tested blocks literally: tests/support/doc_blocks.py.

docs/tutorials/cpp-trainer.md compiles a program: tests/sdk/package/test_docs.py follows it.
"""

import doc_blocks
import doc_runner
import pytest
from conftest import ROOT

LIMIT = 60  # seconds per block on a quiet machine
ELSEWHERE = ('tutorials/cpp-trainer.md',)
PAGES = doc_blocks.pages(ROOT / 'docs')
FOLLOWED = [
    name
    for name, found in PAGES.items()
    if name not in ELSEWHERE and any(block.is_tested for block in found)
]


@pytest.mark.timeout(20 * LIMIT * 10)
@pytest.mark.parametrize('name', FOLLOWED)
def test_page(cpprun, tmp_path, name):
    doc_runner.lay_out(tmp_path)
    doc_runner.follow(cpprun, PAGES[name], LIMIT)


def test_tutorials_have_commands():
    assert len(FOLLOWED) >= 4
