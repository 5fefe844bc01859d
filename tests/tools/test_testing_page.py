"""The tests that docs/testing.md names exist."""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_the_tests_of_the_page_exist():
    named = set(re.findall(r'`(test_\w+)`', (ROOT / 'docs' / 'testing.md').read_text()))
    texts = [path.read_text() for path in (ROOT / 'tests').rglob('test_*.py')]
    there = {name for text in texts for name in re.findall(r'(?m)^def (test_\w+)', text)}
    assert len(named) > 30 and named <= there, named - there
