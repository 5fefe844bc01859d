"""docs/reference/sdk.md matches the code."""

import re

from launches import ROOT

PAGE = (ROOT / 'docs/reference/sdk.md').read_text()


def test_shown_program_is_the_example():
    shown = re.findall(r'<!-- is the file: (\S+) -->\n```\w+\n(.*?)```', PAGE, re.S)
    assert shown
    for path, text in shown:
        assert text == (ROOT / path).read_text(), path


def test_every_ddp_option_has_a_row():
    folder = ROOT / 'worker_sdk' / 'cpprun' / 'nn' / 'parallel'
    text = (folder / 'ddp_options.hpp').read_text()
    struct = re.search(r'struct DdpOptions \{(.*?)\n\};', text, re.S)[1]
    names = re.findall(r'^  [\w:<>]+ (\w+)(?: = [^;]*|\{\})?;', struct, re.M)
    assert len(names) > 8
    without_effect = {'dim', 'check_reduction'}  # as in Python
    assert [name for name in names if f'`{name}`' not in PAGE and name not in without_effect] == []


def test_every_error_has_a_row():
    text = (ROOT / 'worker_sdk' / 'cpprun' / 'dist' / 'errors.hpp').read_text()
    for name in re.findall(r'^class (Dist\w+)', text, re.M):
        assert f'`{name}`' in PAGE or f'`dist::{name}`' in PAGE, name


def test_every_collective_has_a_row():
    folder = ROOT / 'worker_sdk' / 'cpprun' / 'dist'
    text = (folder / 'collectives.hpp').read_text() + (folder / 'objects.hpp').read_text()
    names = set(re.findall(r'^(?:Work|void|int|std::vector<\w+>|T) (\w+)\(', text, re.M))
    names -= {'broadcast_bytes', 'deserialize_all', 'set_debug_checks'}
    missing = [name for name in names if not re.search(rf'`{name}`', PAGE)]
    assert len(names) > 20
    assert missing == []
