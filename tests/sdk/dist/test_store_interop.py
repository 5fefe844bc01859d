"""C++ and Python share one TCP store, served by either."""

import socket

import pytest
from launches import BIN
from sdk_ranks import TWIN


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


@pytest.mark.parametrize('python_ranks', ['none', '0', '1', '0|1'])
def test_values_are_shared_with_python(ranks, python_ranks):
    port = free_port()
    script = (
        f'case $RANK in {python_ranks}) exec {TWIN}/store_talk.py {port};; '
        f'*) exec {BIN}/sdk_dist_cases store_talk {port};; esac'
    )
    lines = ranks.cpprun(2, 'bash', '-c', script).well().lines()
    said = (
        'add 8',
        'check True False',
        'compare_set first first third',
        'delete True False',
        'get 3',
        'hears more 3 third',
        'multi 12',
    )
    assert lines == [f'{side} {words}' for side in ('client', 'server') for words in said]


def test_timeout(ranks):
    (line,) = ranks.run(BIN / 'sdk_dist_cases', 'store_timeout').well().lines()
    assert 'DistTimeoutError' in line
    assert "'never'" in line
