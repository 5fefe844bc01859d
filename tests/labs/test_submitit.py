"""docs/how-to/slurm.md: submitit runs a function that starts cpprun, under a real Slurm."""
import pathlib
import re

import pytest
from long_tests import long
from test_slurm import SLOWEST, WORKER, finish, wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON = ROOT / 'build' / 'venv-submitit' / 'bin' / 'python'
PAGE = (ROOT / 'docs' / 'how-to' / 'slurm.md').read_text()
pytestmark = long


@pytest.fixture
def submit(lab, cpprun, place):
    """Runs the program of the page with other arguments for cpprun, in the place of the test."""
    if not PYTHON.exists():
        pytest.skip('tools/deps.sh --submitit')
    program = re.search(r'```python\n# launch.py\n(.*?)```', PAGE, re.S).group(1)

    def start(*args):
        text = program.replace("'train.py', '--epochs', '10'", ', '.join(map(repr, args)))
        assert text != program
        (place / 'launch.py').write_text(text.replace('submitit-%j', f'{place}/submitit-%j'))
        return lab.start('env', f'PATH={cpprun.parent}:/usr/local/bin:/usr/bin:/bin', PYTHON,
                         place / 'launch.py')
    return start


def logs(place):
    return ''.join(path.read_text() for path in sorted(place.glob('submitit-*/*_log.*')))


def number_of(place):
    wait_for(lambda: list(place.glob('submitit-*')), 'the job is submitted')
    return next(iter(place.glob('submitit-*'))).name.removeprefix('submitit-')


def test_a_function_starts_cpprun_on_all_nodes(submit, place):
    out = finish(process := submit(str(WORKER), '2', str(place)))
    assert process.returncode == 0 and 'exit code 0' in out, (out, logs(place))
    text = logs(place)
    assert 'rank 0 of 2 on n1' in text and 'rank 1 of 2 on n2' in text, text
    assert text.count('Slurm job') == 1, text


def test_a_failure_is_the_functions(submit, place):
    process = submit('--no-python', '/bin/false')
    out = finish(process)
    assert process.returncode != 0 and 'cpprun ended with exit code 1' in out, (out, logs(place))


def test_a_stopped_job_saves_is_requeued_and_continues(submit, lab, place):
    process = submit(str(WORKER), '400', str(place))
    try:
        wait_for(lambda: (place / 'running-1').exists(), 'the workers run')
        number = number_of(place)
        lab.run('scancel', '--signal=USR2', number)
        out = process.communicate(timeout=SLOWEST)[0]
    finally:
        process.kill()
    text = logs(place)
    assert process.returncode == 0 and 'exit code 0' in out, (out, text)
    assert lab.job(number)['Restarts'] == '1', (out, text)
    assert 'rank 0 saves at step' in text and 'ends at step 400' in text, text
    assert re.search(r'rank 0 of 2 on n1 begins at step [1-9]', text), text
