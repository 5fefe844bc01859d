"""The pages of the C++ SDK match the code; docs/tutorials/cpp-trainer.md works."""

import os
import pathlib
import re
import shutil

import doc_blocks
import doc_runner
import pytest
from launches import BIN, ROOT, Launches

PAGE = (ROOT / 'docs/reference/sdk.md').read_text()
HOW_TO = (ROOT / 'docs/how-to/cpp-program.md').read_text()


def test_shown_program_is_the_example():
    shown = re.findall(r'<!-- is the file: (\S+) -->\n```\w+\n(.*?)```', PAGE + HOW_TO, re.S)
    assert len(shown) >= 2
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
    names -= {'broadcast_bytes', 'send_bytes', 'recv_bytes'}
    names -= {'deserialize_all', 'deserialize_from', 'deserialize_of_ranks', 'set_debug_checks'}
    missing = [name for name in names if not re.search(rf'`{name}`', PAGE)]
    assert len(names) > 20
    assert missing == []


@pytest.mark.timeout(3600)
def test_the_tutorial_of_a_trainer_works(torch, tmp_path, monkeypatch):
    """The build folder under test is the tutorial's build/release."""
    doc_runner.lay_out(tmp_path)
    (tmp_path / 'build/release/bin').unlink()
    (tmp_path / 'build/release').rmdir()
    (tmp_path / 'build/release').symlink_to(BIN.parent)
    if shutil.which('ccache'):
        folder = os.environ.get('CCACHE_DIR', pathlib.Path.home() / '.cache/ccache')
        ccache = {'CMAKE_CXX_COMPILER_LAUNCHER': 'ccache', 'CCACHE_DIR': folder}
        ccache |= {'CCACHE_BASEDIR': tmp_path, 'CCACHE_NOHASHDIR': 1}
        for name, value in ccache.items():
            monkeypatch.setenv(name, str(value))
    monkeypatch.setenv('HOME', str(tmp_path / 'home'))
    (tmp_path / 'home').mkdir()
    launches = Launches(tmp_path)
    try:
        doc_runner.follow(launches, doc_blocks.blocks(ROOT / 'docs/tutorials/cpp-trainer.md'), 400)
    finally:
        launches.close()
