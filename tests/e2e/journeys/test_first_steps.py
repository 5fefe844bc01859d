"""A new user with a laptop and no GPU: sees ranks, then a restart."""

import re
import uuid

import pytest
from conftest import EXAMPLES
from launches import BIN, has_no_traces, kill

BANNER = 'Setting OMP_NUM_THREADS environment variable for each process to be 1 in default'


def test_missing_gpus_are_reported_with_the_cure(cpprun):
    code, output = cpprun.run(
        'cpprun', '--standalone', '--nproc_per_node=gpu', EXAMPLES / 'launch_args_test.py',
        env={'CPPRUN_TEST_GPUS': '0'},
    )  # fmt: skip
    assert code == 1
    assert '--nproc_per_node=gpu has nothing to count' in output
    assert 'use a number (--nproc_per_node=2) or --nproc_per_node=cpu' in output
    assert has_no_traces(output)


def test_four_ranks_introduce_themselves(cpprun):
    code, output = cpprun.run(
        'cpprun', '--standalone', '--nproc_per_node=4', EXAMPLES / 'launch_args_test.py'
    )
    assert code == 0, output
    assert output.count(BANNER) == 1
    without_banner = re.sub(r'\*{20,}\n.*?\n\*{20,}\n', '', output, flags=re.S)
    pairs = re.findall(
        r"\['.*launch_args_test.py'\]\n"
        r'Process Id:\d+, Rank: (\d), Local Rank: \d, World Size: 4, Local World Size: 4\n',
        without_banner,
    )
    assert sorted(pairs) == ['0', '1', '2', '3']
    # Nothing of cpprun's own.
    assert re.sub(r'\[.*\]\n|Process Id:.*\n', '', without_banner).strip() == ''


@pytest.mark.parametrize('program', ['toy_trainer.py', 'ex_toy_trainer'])
def test_killed_rank_resumes_from_the_snapshot(cpprun, tmp_path, program):
    path = EXAMPLES / program if program.endswith('.py') else BIN / program
    if not path.exists():
        pytest.skip('the C++ examples are not built')
    name = f'laptop-{uuid.uuid4().hex[:8]}'  # other jobs may run here
    job = cpprun.start(
        'cpprun', '--rdzv-backend=c10d', '--rdzv-endpoint=localhost:0', f'--rdzv-id={name}',
        '--nproc_per_node=2', '--max_restarts=3', path, '--total-epochs', 4_000, '--save-every', 1,
    )  # fmt: skip
    job.wait_for(r'Epoch 2 \| Training snapshot saved')
    code, pid = cpprun.run('cpprunctl', 'pid', '--rank', 1, '--job', name)
    assert code == 0, pid
    kill(int(pid))
    killed = rf'^cpprun: rank 1 \(.*pid {int(pid)}.*\) was killed by SIGKILL.*'
    job.wait_for(killed + 'restart 1 of 3')
    epoch = int(job.wait_for(r'Resuming training from snapshot at Epoch (\d+)')[1])
    assert epoch >= 3  # 0 to 2 were saved
    job.wait_for(rf'\[GPU[01]\] Epoch {epoch} \|')
    own = [line for line in job.output.splitlines() if line.startswith('cpprun:')]
    assert has_no_traces('\n'.join(own))  # peers of the dead rank may show theirs
    job.send(2)  # Ctrl-C
    job.done()
    assert cpprun.wait_until_gone() == []
