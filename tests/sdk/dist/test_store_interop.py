"""C++ and Python share one TCP store, served by either."""

import pytest
from launches import BIN, free_port
from sdk_ranks import TWIN


@pytest.mark.parametrize('python_ranks', ['none', '0', '1', '0|1'])
def test_values_are_shared_with_python(ranks, python_ranks):
    port = free_port()
    script = (
        f'case $RANK in {python_ranks}) exec {TWIN}/store_calls.py {port};; '
        f'*) exec {BIN}/sdk_dist_cases store_calls {port};; esac'
    )
    lines = ranks.cpprun(2, 'bash', '-c', script).well().lines()
    expected = (
        'add 8',
        'check True False',
        'compare_set first first third',
        'delete True False',
        'get 3',
        'multi 12',
        'reads more 3 third',
    )
    assert lines == [f'{side} {words}' for side in ('client', 'server') for words in expected]


def test_a_key_that_is_never_set_times_out(ranks):
    (line,) = ranks.run(BIN / 'sdk_dist_cases', 'store_timeout').well().lines()
    assert 'DistTimeoutError' in line
    assert "'never'" in line
