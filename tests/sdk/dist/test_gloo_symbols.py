"""Gloo's headers are stand-ins: nothing made from them may need or define a symbol of Gloo's."""

import re
import subprocess

from launches import BIN


def test_no_symbols_of_gloo():
    library = BIN.parent / 'worker_sdk' / 'cpprun' / 'dist' / 'libcpprun_dist.a'
    symbols = subprocess.run(
        ['nm', '-C', library], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert any('c10d::ProcessGroupGloo::ProcessGroupGloo' in line for line in symbols)
    own = re.compile(r' [A-Za-z] (vtable for |typeinfo for |typeinfo name for )?gloo::')
    assert [line for line in symbols if own.search(line)] == []
