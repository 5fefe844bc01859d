"""cpprun --hosts with a program in the place of ssh, which runs the command on this machine.
tests/labs/test_ssh.py has a real sshd.
"""
import json
import os
import signal
import socket
import time

import pytest
from launches import poll
from process_info import children_of, cpu_seconds
from test_unkillable_workers import held  # noqa: F401

RUNS_HERE = """
case $1 in -G) exit 1;; esac
for last; do :; done
exec sh -c "$last"
"""
WAITS = """
case $1 in -G) exit 1;; esac
touch $MARKS/ssh-$$
read line < $MARKS/gate
echo "Connection refused" >&2
exit 255
"""


@pytest.fixture
def endpoint():
    """Of this machine, which is all hosts."""
    with socket.create_server(('127.0.0.1', 0)) as server:
        return f'--rdzv-endpoint=127.0.0.1:{server.getsockname()[1]}'


def test_agents_run_with_ordinary_flags(jobs, endpoint):
    ssh = jobs.sh(RUNS_HERE)
    worker = jobs.py('import json, os, sys\n'
                     'ranks = [os.environ[name] for name in ("RANK", "WORLD_SIZE")]\n'
                     'print(json.dumps(ranks + sys.argv[1:]))')
    job = jobs.cpprun(f'--ssh={ssh}', '--hosts', 'x1:2,x2:1', endpoint, worker, "it's", '$HOME')
    assert job.done() == 0, job.output
    lines = [line.split(': ', 1) for line in sorted(job.out.splitlines())]
    rest = ["it's", '$HOME']
    assert [(host, json.loads(text)) for host, text in lines] == [
        ('x1', ['0', '3', *rest]), ('x1', ['1', '3', *rest]), ('x2', ['2', '3', *rest])]


def test_hosts_of_a_tree_start_each_other(jobs, endpoint):
    """Seven on two levels. Each ssh process notes its target."""
    ssh = jobs.sh('case $1 in -G) exit 1;; esac\n'
                  'for word; do target=$last; last=$word; done\n'
                  'echo "$PPID" >$MARKS/parent-$target\n'
                  'exec sh -c "$last"\n')
    names = [f'x{number}' for number in range(7)]
    job = jobs.cpprun(f'--ssh={ssh}', '--hosts', ','.join(names), '--ssh-tree=3', endpoint,
                      jobs.py('import os; print(os.environ["RANK"])'))
    assert job.done() == 0, job.output
    assert sorted(job.out.splitlines()) == [f'x{rank}: {rank}' for rank in range(7)]
    parents = [jobs.mark(f'parent-{name}').strip() for name in names]
    assert len(set(parents[:3])) == 1 and parents[0] == str(job.process.pid), parents
    assert len(set(parents[3:6])) == 1 and parents[3] not in (parents[0], parents[6]), parents


def test_closed_standard_streams_are_no_harm(jobs, endpoint):
    ssh = jobs.sh(RUNS_HERE)
    closed = ('sh', '-c', 'exec "$@" <&- >&- 2>&-', 'sh')
    job = jobs.cpprun(f'--ssh={ssh}', '--hosts', 'x1,x2', endpoint,
                      jobs.py('import os; open(os.environ["MARKS"] + "/" + os.environ["RANK"], "w")'
                              '.write("ran")'), wrap=closed)
    assert job.done() == 0
    assert [jobs.mark(rank) for rank in '01'] == ['ran', 'ran']


def test_at_most_64_connections_begin_at_a_time(jobs):
    ssh = jobs.sh(WAITS)
    gate = jobs.marks / 'gate'
    names = ','.join(f'x{number}' for number in range(70))
    os.mkfifo(gate)
    job = jobs.cpprun(f'--ssh={ssh}', '--hosts', names, jobs.py('pass'))

    def started():
        return len(list(jobs.marks.glob('ssh-*')))
    poll(lambda: started() >= 64, what=lambda: f'{started()} started')
    assert len(children_of(job.process.pid)) == 64
    while job.process.poll() is None:
        try:
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))  # all readers see the end
        except OSError:  # it has no reader now
            pass
        poll(lambda: job.process.poll() is not None or children_of(job.process.pid))
    assert job.done() == 1 and started() == 70, job.output
    assert job.err.count('\nerror: host x') + job.err.startswith('error: host x') == 70
    assert job.err.count(' cannot be reached: nothing listens at its ssh port\n') == 70
    assert job.err.count('hint: start sshd there') == 1, 'the same hint stands once'
    assert '\nerror: the job did not start: it needs 70 hosts and 0 are ready\n' in job.err


def test_a_missing_ssh_is_named(jobs):
    names = ','.join(f'x{number}' for number in range(70))
    job = jobs.cpprun('--ssh=/nowhere/ssh', '--hosts', names, jobs.py('pass'))
    assert job.done() == 1
    assert job.err.count(': cannot start /nowhere/ssh: there is no such file') == 70, job.err


def test_an_ssh_that_sigkill_does_not_end_is_left_behind(jobs, held):  # noqa: F811
    ssh = jobs.sh('case $1 in -G) exit 1;; esac\n'
                  'echo $$ >$MARKS/new; mv $MARKS/new $MARKS/ssh; exec sleep 10000')
    job = jobs.cpprun(f'--ssh={ssh}', '--hosts=x1', jobs.py('pass'))
    pid = int(jobs.mark('ssh'))
    tracer = held(pid)
    job.send(signal.SIGINT)
    assert tracer.state() == 'held'
    job.send(signal.SIGINT)
    before = cpu_seconds(job.process.pid)
    time.sleep(2)
    assert cpu_seconds(job.process.pid) - before < 1, 'it polls without a pause'
    assert job.done(60) == 130, job.output
    assert f'x1: cpprun: the process {pid} has not ended 5 s after SIGKILL' in job.err


@pytest.mark.parametrize('args, text', [
    (['--hosts=a,a'], 'host a is in the list twice'),
    (['--hosts=a:0'], '0 slots start no worker there'),
    (['--hostfile=/nowhere'], '--hostfile=/nowhere can\'t be read'),
    (['--hosts=a', '--ssh-tree=0'], 'write how many hosts one host reaches'),
    (['--hosts=a', '--nnodes=2'], '--nnodes=2, but the list has 1 host'),
    (['--exclude=a'], 'needs the hosts: add --hosts=a:8,b:8'),
])
def test_wrong_lists_end_at_once(jobs, args, text):
    job = jobs.cpprun(*args, 'train.py')
    assert job.done() == 1 and text in job.err and job.err.startswith('error: '), job.err


def test_a_hostfile_error_names_the_line(jobs, tmp_path):
    (tmp_path / 'hosts').write_text('a slots=2\n\nb slots=x\n')
    job = jobs.cpprun(f'--hostfile={tmp_path}/hosts', 'train.py')
    assert job.done() == 1
    assert f"{tmp_path}/hosts line 3: 'x' is no number of slots\nhint: write 1 to 4096" in job.err


def test_an_agent_ends_with_its_standard_input(jobs):
    """Without a launcher: its input is empty."""
    job = jobs.cpprun('--stdin-control', jobs.py('print("ran")'))
    assert job.done() == 1 and 'ran' not in job.out, job.output
    assert 'standard input has ended before the job began' in job.err, job.err


def test_two_signals_at_once_are_two(jobs):
    """As from a second Ctrl-C: it ends workers that ignore the first one."""
    os.mkfifo(jobs.marks / 'in')
    worker = jobs.py('import os, signal, time; signal.signal(2, signal.SIG_IGN)\n'
                     'open(os.environ["MARKS"] + "/ready", "w").write("yes")\n'
                     'time.sleep(10_000)')
    job = jobs.cpprun('--stdin-control', '--shutdown-timeout=3600', worker,
                      wrap=('sh', '-c', 'exec "$@" <"$MARKS/in"', 'sh'))
    with open(jobs.marks / 'in', 'w') as control:
        control.write('end\nbegin\n')
        control.flush()
        jobs.mark('ready')
        control.write('signal 2\nsignal 2\n')
        control.flush()
        assert job.done() == 130, job.output
