"""cpprun --hosts on hosts with a real sshd each."""
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest
from launches import is_alive, poll, read_bytes

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKER = pathlib.Path(__file__).with_name('ssh_worker.py')
SLOWEST = 300


# A host without an answer: something accepts connections and sends nothing. The launcher keeps the
# socket and its own pid.
SILENT = ("import os, socket, sys; s = socket.create_server(('', 2222)); "
          "s.set_inheritable(True); os.execvp(sys.argv[1], sys.argv[1:])")


class Launch:
    """cpprun on the host `login`."""

    def __init__(self, hosts, folder, *args, inside=()):
        self.hosts, self.folder = hosts, folder
        self.out_path, self.err_path = folder / 'out', folder / 'err'
        command = hosts.command(*inside, *args)
        with open(self.out_path, 'w') as out, open(self.err_path, 'w') as err:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, cwd=folder, start_new_session=True)

    @property
    def out(self):
        return self.out_path.read_text()

    @property
    def err(self):
        return self.err_path.read_text()

    def texts(self):
        return f'stdout:\n{self.out}\nstderr:\n{self.err}'

    def send(self, number):
        self.process.send_signal(number)

    def end(self, code=None):
        """Waits for the end and for the end of all processes on all hosts."""
        try:
            got = self.process.wait(timeout=SLOWEST)
        except subprocess.TimeoutExpired:
            pytest.fail('it does not end: ' + self.texts())
        assert code is None or got == code, (got, self.texts())
        poll(lambda: not self.hosts.processes(), what=lambda: f'left: {self.hosts.processes()}')
        return got


@pytest.fixture
def launch(hosts, cpprun, tmp_path):
    made = []

    def start(*args, **options):
        made.append(Launch(hosts, tmp_path, cpprun, *args, **options))
        return made[-1]
    yield start
    for one in made:
        one.process.kill()
        one.process.wait()


def ranks_run(place, count):
    """Waits until these ranks run; their pids."""
    def all_run():
        return all((place / str(rank)).exists() for rank in range(count))
    poll(all_run, what=f'{count} ranks run')
    return [int((place / str(rank)).read_text()) for rank in range(count)]


def lines_of(text, host):
    return [line.removeprefix(host + ': ') for line in text.splitlines()
            if line.startswith(host + ': ')]


# Without a tree, and with one whose first host reaches the second.
TREES = pytest.mark.parametrize('tree', [[], ['--ssh-tree=1']], ids=['direct', 'tree'])


def test_one_command_runs_the_script_on_all_hosts(launch):
    job = launch('--hosts', 'a:2,b:1', WORKER, 'greet')
    job.end(0)
    assert sorted(lines_of(job.out, 'a')) == ['rank 0 of 3 on a', 'rank 1 of 3 on a'], job.texts()
    assert lines_of(job.out, 'b') == ['rank 2 of 3 on b'], job.texts()
    assert 'rank 1 complains' in lines_of(job.err, 'a'), job.texts()
    assert lines_of(job.err, 'b') == ['rank 2 complains'], job.texts()
    assert 'only a wish' not in job.err, job.texts()


def test_a_hostfile_names_the_hosts(launch, tmp_path):
    (tmp_path / 'hosts.txt').write_text('# three formats\na slots=2\nb:1\n\nc slots=1 # spare\n')
    job = launch('--hostfile=hosts.txt', '--exclude=b', WORKER, 'greet')
    job.end(0)
    assert 'rank 1 of 3 on a' in job.out and 'rank 2 of 3 on c' in job.out, job.texts()
    assert not lines_of(job.out, 'b'), job.texts()


def test_static_jobs_meet_at_the_first_host(launch):
    job = launch('--hosts', 'a,b', '--rdzv-backend=static', WORKER, 'greet')
    job.end(0)
    assert lines_of(job.out, 'b') == ['rank 1 of 2 on b'], job.texts()


def test_the_host_of_the_user_needs_no_ssh(launch):
    job = launch('--hosts', 'login:1,a:1', WORKER, 'greet')
    job.end(0)
    assert lines_of(job.out, 'login') == ['rank 0 of 2 on login'], job.texts()
    assert lines_of(job.out, 'a') == ['rank 1 of 2 on a'], job.texts()


def test_names_of_ssh_config_are_for_ssh_alone(launch):
    job = launch('--hosts', 'renamed,b', WORKER, 'greet')
    job.end(0)
    assert lines_of(job.out, 'renamed') == ['rank 0 of 2 on a'], job.texts()


@TREES
def test_arguments_and_variables_arrive_as_they_are(launch, tmp_path, tree):
    args = ['two words', "it's", '"', '$HOME `id` \\', 'a\nb', '', '*', '!x', 'ü', '--nnodes=9']
    job = launch('--hosts', 'a,b', *tree, '-x', 'GIVEN=some $text\nin lines', '-xHERE', WORKER,
                 'variables', 'GIVEN', 'HERE', 'OTHER', *args,
                 inside=['env', 'HERE= kept ', 'OTHER=stays here'])
    job.end(0)
    for host in 'ab':
        folder, got, values, stdin = json.loads(lines_of(job.out, host)[0])
        assert stdin == ''
        assert folder == str(tmp_path)
        assert got[5:] == args
        wanted = {'GIVEN': 'some $text\nin lines', 'HERE': ' kept ', 'OTHER': None}
        assert {name: values[name] for name in wanted} == wanted


@TREES
def test_no_secret_is_in_a_command_line(launch, tmp_path, tree):
    secret, value = 'a-secret-of-the-job-1234', 'value-of-a-key-5678'
    (tmp_path / 'secret').write_text(secret)
    (tmp_path / 'secret').chmod(0o600)
    job = launch('--hosts', 'a,b', *tree, '--secret-file=secret', '-x', 'API_KEY', WORKER,
                 'place', tmp_path, 'sleep', inside=['env', f'API_KEY={value}'])
    ranks_run(tmp_path, 2)
    for pid in job.hosts.processes():
        line = read_bytes(f'/proc/{pid}/cmdline')
        for text in (secret.encode(), value.encode()):
            assert text not in line and text.hex().encode() not in line, line
    workers = ranks_run(tmp_path, 2)
    for pid in workers:
        environment = pathlib.Path(f'/proc/{pid}/environ').read_bytes()
        assert value.encode() in environment and secret.encode() not in environment
    job.send(signal.SIGINT)
    job.end(130)


def test_a_client_without_the_secret_cannot_join(launch, hosts, cpprun, tmp_path):
    meet = ['--rdzv-endpoint=a:29555', '--rdzv-id=one']
    job = launch('--hosts', 'a,b', '--nnodes=2:3', *meet, WORKER, 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 2)
    foreign = subprocess.run(
        hosts.command(cpprun, '--nnodes=2:3', '--rdzv-backend=c10d', *meet,
                      '--rdzv-conf=join_timeout=5', WORKER, 'greet', number=3),
        capture_output=True, text=True, timeout=SLOWEST)
    assert foreign.returncode == 1 and 'secret' in foreign.stderr, foreign
    job.send(signal.SIGINT)
    job.end(130)


def test_a_failed_worker_is_reported_once(launch, tmp_path):
    job = launch('--hosts', 'a:1,b:2,c:1', WORKER, 'place', tmp_path, 'fail', '2', 'sleep')
    job.end(1)
    assert job.err.count(' failed on rank 2 (node b') == 1, job.texts()
    assert job.err.count('ChildFailedError') == 1, job.texts()
    for host in 'ac':
        lines = [line for line in lines_of(job.err, host) if 'rank 2' in line]
        assert len(lines) == 1 and 'on b) exited with code 3' in lines[0], job.texts()


@TREES
def test_one_interrupt_ends_all_hosts(launch, tmp_path, tree):
    job = launch('--hosts', 'a:2,b:1', *tree, WORKER, 'place', tmp_path, 'sleep')
    workers = ranks_run(tmp_path, 3)
    os.killpg(job.process.pid, signal.SIGINT)  # as a terminal does
    job.end(130)
    assert not [pid for pid in workers if is_alive(pid)]
    assert 'SIGINT: the job is stopped on 2 hosts' in job.err, job.texts()


@TREES
def test_sigterm_lets_the_workers_save(launch, tmp_path, tree):
    job = launch('--hosts', 'a,b', *tree, WORKER, 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 2)
    job.send(signal.SIGTERM)
    job.end(75)
    assert 'rank 0 saves' in job.out and 'rank 1 saves' in job.out, job.texts()


def test_a_second_interrupt_kills_at_once(launch, tmp_path):
    job = launch('--hosts', 'a,b', '--shutdown-timeout=3600', WORKER, 'place', tmp_path, 'stubborn')
    workers = ranks_run(tmp_path, 2)
    job.send(signal.SIGINT)
    poll(lambda: 'the job is stopped on 2 hosts' in job.err, what=job.texts)
    assert all(is_alive(pid) for pid in workers)
    job.send(signal.SIGINT)
    job.end(130)


@pytest.mark.parametrize('number, code', [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_a_signal_ends_the_start(launch, number, code):
    job = launch('--hosts', 'a,silent', WORKER, 'greet', inside=[sys.executable, '-c', SILENT])
    poll(lambda: job.hosts.connections('a'), what=job.texts)
    job.send(number)
    job.end(code)
    assert job.out == '', job.texts()


@TREES
def test_slow_readers_lose_nothing(hosts, cpprun, tmp_path, tree):
    count = 60_000  # 5 MB of each host: more than ssh and the launcher keep
    command = hosts.command(cpprun, '--hosts', 'a,b', *tree, WORKER, 'lines', count, 'place',
                            tmp_path)
    job = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, bufsize=0)
    first = os.read(job.stdout.fileno(), 100)
    time.sleep(6)  # longer than the launcher waits for the rest of a line
    assert not list(tmp_path.glob('[01]'))  # the workers wait for the reader
    text = (first + job.communicate(timeout=SLOWEST)[0]).decode()
    assert job.returncode == 0
    for rank, host in enumerate('ab'):
        wanted = [f'line {number} of {rank} {"x" * 60}' for number in range(count)]
        assert lines_of(text, host) == wanted


@TREES
def test_a_reader_that_takes_nothing_does_not_keep_a_stopped_job(hosts, cpprun, tmp_path, tree):
    command = hosts.command(cpprun, '--hosts', 'a,b', *tree, WORKER, 'place', tmp_path, 'lines',
                            10**9)
    job = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE)
    try:
        workers = ranks_run(tmp_path, 2)
        job.send_signal(signal.SIGTERM)
        assert job.wait(timeout=SLOWEST) == 143  # workers that do not save
    finally:
        job.kill()
        job.wait()
    poll(lambda: not hosts.processes(), what='nothing is left')
    assert not [pid for pid in workers if is_alive(pid)]


@pytest.mark.parametrize('names', ['a:2,b:1', 'login:2,b:1'])
@TREES
def test_nothing_stays_when_the_launcher_is_killed(launch, tmp_path, names, tree):
    job = launch('--hosts', names, *tree, WORKER, 'place', tmp_path, 'sleep')
    workers = ranks_run(tmp_path, 3)
    job.send(signal.SIGKILL)
    job.end(-signal.SIGKILL)
    assert not [pid for pid in workers if is_alive(pid)]


def test_an_elastic_job_continues_without_a_lost_host(launch, hosts, tmp_path):
    job = launch('--hosts', 'a,b', '--nnodes=1:2', WORKER, 'greet', 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 2)
    (tmp_path / '0').unlink()
    connection = hosts.connections('b')
    assert len(connection) == 1, connection
    os.kill(connection[0], signal.SIGKILL)
    poll(lambda: 'rank 0 of 1 on a' in job.out, what=job.texts)
    assert 'host b is lost' in job.err and 'the job continues without it' in job.err, job.texts()
    ranks_run(tmp_path, 1)
    job.send(signal.SIGTERM)
    job.end()
    assert 'rank 0 saves' in lines_of(job.out, 'a'), job.texts()


@pytest.mark.parametrize('name', ['b', 'a'], ids=['another-host', 'the-first-host'])
def test_a_lost_host_joins_again_when_it_is_back(launch, hosts, tmp_path, name):
    """Its sshd is gone for a time. If it is the first host, another one leads meanwhile."""
    job = launch('--hosts', 'a,b,c', '--nnodes=1:3', WORKER, 'greet', 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 3)
    poll(lambda: job.out.count(' of 3 on ') == 3, what=job.texts)  # or a line of `name` is lost
    hosts.stop_server(name)
    os.kill(hosts.connections(name)[0], signal.SIGKILL)
    poll(lambda: job.out.count(' of 2 on ') == 2, what=job.texts)
    hosts.start_server(name)
    poll(lambda: f'host {name} is back: it joins the job again' in job.err, what=job.texts)
    poll(lambda: job.out.count(' of 3 on ') == 6, what=job.texts)
    assert job.err.count('Connection refused') == 0, job.texts()  # of the attempts before
    job.send(signal.SIGTERM)
    job.end(75)
    assert 'saves' in str(lines_of(job.out, name)), job.texts()


def test_a_job_that_is_over_waits_for_no_lost_host(launch, hosts, tmp_path):
    job = launch('--hosts', 'a,b', '--nnodes=1:2', WORKER, 'greet', 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 2)
    hosts.stop_server('b')
    os.kill(hosts.connections('b')[0], signal.SIGKILL)
    try:
        poll(lambda: 'rank 0 of 1 on a' in job.out, what=job.texts)
        ranks_run(tmp_path, 1)
        job.send(signal.SIGTERM)
        job.end(75)
    finally:
        hosts.start_server('b')
    assert 'is back' not in job.err, job.texts()


def test_another_host_leads_when_the_first_is_lost(launch, hosts, tmp_path):
    job = launch('--hosts', 'a,b,c', '--nnodes=2:3', WORKER, 'greet', 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 3)
    os.kill(hosts.connections('a')[0], signal.SIGKILL)
    poll(lambda: job.out.count(' of 2 on ') == 2, what=job.texts)
    ranks_run(tmp_path, 2)
    job.send(signal.SIGTERM)
    job.end()
    assert 'saves' in str(lines_of(job.out, 'b')) and 'saves' in str(lines_of(job.out, 'c'))


def test_the_others_stop_when_one_agent_cannot_start(launch):
    job = launch('--hosts', 'a,poor@b', WORKER, 'greet')
    job.end(1)
    assert 'poor@b: error: the limit on open files is 30' in job.err, job.texts()
    assert 'the other hosts are still running 30 s later' in job.err, job.texts()


def test_a_lost_host_stops_a_job_that_needs_it(launch, hosts, tmp_path):
    job = launch('--hosts', 'a,b', WORKER, 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 2)
    os.kill(hosts.connections('b')[0], signal.SIGKILL)
    job.end(1)
    assert 'host b is lost' in job.err and 'too few hosts are left' in job.err, job.texts()


UNREACHABLE = {
    'refused': 'nothing listens at its ssh port',
    'keyless': 'it accepts no key of yours',
    'changed': 'its host key is not the one in known_hosts',
    'unknown': 'its host key is not in known_hosts\nhint: log in once by hand with ssh unknown',
    'nameless': 'its name is unknown here',
}


def test_hosts_that_cannot_be_reached_are_named(launch):
    job = launch('--hosts', ','.join(['a', *UNREACHABLE]), WORKER, 'greet')
    job.end(1)
    for host, why in UNREACHABLE.items():
        assert f'error: host {host} cannot be reached: {why}' in job.err, job.texts()
    assert 'it needs 6 hosts and 1 is ready\nhint: with --nnodes' in job.err and job.out == ''


def test_an_elastic_job_starts_without_them(launch):
    job = launch('--hosts', 'refused,a,b', '--nnodes=2:3', WORKER, 'greet')
    job.end(0)
    assert 'the job starts without refused, which --nnodes=2:3 allows' in job.err, job.texts()
    assert lines_of(job.out, 'a') == ['rank 0 of 2 on a'], job.texts()
    assert lines_of(job.out, 'b') == ['rank 1 of 2 on b'], job.texts()


def test_a_host_that_was_left_out_joins_when_it_can_be_reached(launch, hosts, tmp_path):
    hosts.stop_server('b')
    try:
        job = launch('--hosts', 'a,b,c', '--nnodes=2:3',
                     WORKER, 'greet', 'place', tmp_path, 'sleep')
        poll(lambda: job.out.count(' of 2 on ') == 2, what=job.texts)
        assert 'the job starts without b, which --nnodes=2:3 allows' in job.err, job.texts()
    finally:
        hosts.start_server('b')
    poll(lambda: job.out.count(' of 3 on ') == 3, what=job.texts)
    assert 'host b can be reached now: it joins the job' in job.err, job.texts()
    assert job.err.count('Connection refused') == 1, job.texts()  # of the attempts before
    job.send(signal.SIGTERM)
    job.end(75)
    assert 'the job is stopped on 3 hosts' in job.err, job.texts()
    assert 'saves' in str(lines_of(job.out, 'b')), job.texts()


@pytest.mark.parametrize('fanout, clients', [('1', [1, 1, 1, 0]), ('2', [2, 1, 0, 0])])
def test_hosts_of_a_tree_start_each_other(launch, hosts, tmp_path, fanout, clients):
    job = launch('--hosts', 'a:2,b:1,c:1', f'--ssh-tree={fanout}',
                 WORKER, 'greet', 'place', tmp_path, 'sleep')
    ranks_run(tmp_path, 4)
    poll(lambda: job.out.count(' of 4 on ') == job.err.count(' complains') == 4, what=job.texts)
    assert [len(hosts.clients(name)) for name in ('login', 'a', 'b', 'c')] == clients, job.texts()
    for host, count in (('a', 2), ('b', 1), ('c', 1)):
        assert lines_of(job.err, host) and 'complains' in lines_of(job.err, host)[-1], job.texts()
        lines = lines_of(job.out, host)
        assert len(lines) == count and all(f'of 4 on {host}' in line for line in lines), job.texts()
    job.send(signal.SIGTERM)
    job.end(75)
    assert all('saves' in str(lines_of(job.out, host)) for host in 'abc'), job.texts()


def test_hosts_that_a_host_of_the_tree_cannot_reach_are_named(launch):
    """The second host would reach the third, which the first one then tries."""
    job = launch('--hosts', 'a,refused,keyless,b', '--ssh-tree=1', WORKER, 'greet')
    job.end(1)
    for host in ('refused', 'keyless'):
        why = f'host {host} cannot be reached from host a: {UNREACHABLE[host]}'
        assert 'error: ' + why in job.err, job.texts()
    assert 'hint: on host a: start sshd there' in job.err, job.texts()
    assert 'it needs 4 hosts and 2 are ready' in job.err and job.out == '', job.texts()


@pytest.mark.parametrize('option, code', [('-A', 0), ('-a', 1)])
def test_a_tree_works_with_the_keys_of_ssh_agent(launch, hosts, tmp_path, option, code):
    home = hosts.folder / 'home' / '.ssh'
    (tmp_path / 'config').write_text(f'IdentityFile none\nUserKnownHostsFile {home}/known_hosts\n')
    job = launch(f'--ssh=ssh {option} -F {tmp_path}/config', '--hosts', 'a,b', '--ssh-tree=1',
                 WORKER, 'greet',
                 inside=['ssh-agent', 'sh', '-c', f'ssh-add -q {home}/id && exec "$@"', 'sh'])
    job.end(code)
    refused = 'host b cannot be reached from host a: it accepts no key of yours' in job.err
    assert refused == (option == '-a'), job.texts()


@pytest.mark.parametrize('names', ['refused,a,b', 'a,refused,b', 'a,b,refused'])
def test_an_elastic_tree_starts_without_a_host(launch, names):
    job = launch('--hosts', names, '--nnodes=2:3', '--ssh-tree=1', WORKER, 'greet')
    job.end(0)
    assert 'the job starts without refused, which --nnodes=2:3 allows' in job.err, job.texts()
    assert 'cannot be reached' in job.err and 'nothing listens' in job.err, job.texts()
    for rank, host in enumerate('ab'):
        assert lines_of(job.out, host) == [f'rank {rank} of 2 on {host}'], job.texts()


@pytest.mark.parametrize('what', ['connection', 'relay'])
def test_hosts_behind_a_lost_one_are_reached_another_way(launch, hosts, tmp_path, what):
    job = launch('--hosts', 'a,b,c', '--nnodes=1:3', '--ssh-tree=2', WORKER, 'greet', 'place',
                 tmp_path, 'sleep')
    workers = ranks_run(tmp_path, 3)
    poll(lambda: job.out.count(' of 3 on ') == 3, what=job.texts)  # or c's line is lost
    killed = hosts.connections('a') if what == 'connection' else hosts.relays('a')
    os.kill(killed[0], signal.SIGKILL)
    poll(lambda: 'host c is lost: its connection through host a has ended' in job.err,
         what=job.texts)
    assert 'host a is lost: its ssh connection has ended' in job.err, job.texts()
    for host in 'ac':
        poll(lambda: f'host {host} is back: it joins the job again' in job.err, what=job.texts)
    poll(lambda: job.out.count(' of 3 on ') == 6, what=job.texts)
    poll(lambda: not any(map(is_alive, workers)), what='the workers of before have ended')
    assert [len(hosts.clients(name)) for name in ('login', 'a')] == [3, 0], job.texts()
    job.send(signal.SIGTERM)
    job.end(75)
    assert all('saves' in str(lines_of(job.out, host)) for host in 'abc'), job.texts()


def test_a_lost_host_of_a_tree_stops_a_job_that_needs_it(launch, hosts, tmp_path):
    job = launch('--hosts', 'a,b,c', '--ssh-tree=1', WORKER, 'place', tmp_path, 'sleep')
    workers = ranks_run(tmp_path, 3)
    os.kill(hosts.connections('b')[0], signal.SIGKILL)
    job.end(1)
    assert 'host b is lost' in job.err and 'too few hosts are left' in job.err, job.texts()
    assert not [pid for pid in workers if is_alive(pid)]


def test_a_silent_host_is_left_out_after_a_time(launch):
    job = launch('--hosts', 'a,silent', '--nnodes=1:2', WORKER, 'greet',
                 inside=[sys.executable, '-c', SILENT])
    job.end(0)
    assert 'warning: host silent cannot be reached: it does not answer' in job.err, job.texts()
    assert lines_of(job.out, 'a') == ['rank 0 of 1 on a'], job.texts()


@pytest.mark.parametrize('names', [['a,noisy@b'], ['noisy@b,a', '--ssh-tree=1']])
def test_a_login_shell_that_prints_is_named(launch, names):
    job = launch('--hosts', *names, WORKER, 'greet')
    job.end(0)
    assert ('host noisy@b: the login shell prints "Welcome to the cluster unfinished" on stdout'
            in ' '.join(job.err.split())), job.texts()
    assert ' of 2 on b' in lines_of(job.out, 'noisy@b')[0], job.texts()


@TREES
def test_a_missing_cpprun_is_named(launch, tree):
    job = launch('--hosts', 'a,b', *tree, '--remote-cpprun=/nowhere/cpprun', WORKER, 'greet')
    job.end(1)
    for host in 'ab':
        assert f'error: host {host} has no /nowhere/cpprun\n' in job.err, job.texts()
    assert job.err.count('\nhint: install the same version') == 1, job.texts()
    assert '--remote-cpprun=PATH' in job.err, job.texts()


@TREES
def test_another_version_is_named(launch, tmp_path, tree):
    other = tmp_path / 'other'
    other.write_text('#!/bin/sh\necho cpprun-agent 0.0.1\ncat\n')
    other.chmod(0o755)
    job = launch('--hosts', 'a,b', *tree, f'--remote-cpprun={other}', WORKER, 'greet')
    job.end(1)
    for host in 'ab':
        assert f'host {host} has cpprun 0.0.1 and this is' in job.err, job.texts()


def test_a_missing_directory_is_named(launch):
    job = launch('--hosts', 'a', WORKER, 'greet',
                 inside=['sh', '-c', 'mkdir /run/mine; cd /run/mine; exec "$@"', 'sh'])
    job.end(1)
    assert 'host a has no directory /run/mine' in job.err, job.texts()


def test_wrong_options_are_reported_before_the_job_begins(launch):
    job = launch('--hosts', 'a,b', '--hang-timeout=soon', WORKER, 'greet')
    job.end(1)
    assert 'a: error: --hang-timeout=soon' in job.err, job.texts()
    assert 'host a did not start cpprun' in job.err and job.out == '', job.texts()


def test_the_digits_example_learns_and_survives_a_lost_host(launch, hosts):
    job = launch('--hosts', 'a:1,b:1,c:1', '--nnodes=2:3', '--log-dir=/dev/null',
                 ROOT / 'examples' / 'python' / 'digits_ddp.py', '--epochs', '3', '--sleep', '1',
                 inside=['env', f'VIRTUAL_ENV={ROOT}/.venv'])
    poll(lambda: re.search(r'(?m)^a: \[rank 0\] training epoch 1 of 3', job.out), what=job.texts)
    os.kill(hosts.connections('c')[0], signal.SIGKILL)
    job.end(0)
    assert 'resuming from snapshot digits' in job.out, job.texts()
    assert 'training epoch 3 of 3 done' in job.out, job.texts()


PAGE = (ROOT / 'docs' / 'how-to' / 'ssh.md').read_text()


@pytest.mark.parametrize('block', re.findall(r'```sh\n(.*?)```', PAGE, re.S))
def test_the_page_runs(hosts, cpprun, tmp_path, block):
    (tmp_path / 'hosts.txt').write_text(re.search(r'```text\n(.*?)```', PAGE, re.S).group(1))
    (tmp_path / 'train.py').write_text('import os; print("rank", os.environ["RANK"])')
    done = subprocess.run(
        hosts.command('env', f'PATH={cpprun.parent}:/usr/bin:/bin', 'sh', '-ec', block),
        cwd=tmp_path, capture_output=True, text=True, timeout=SLOWEST, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, (block, done)
    started = block.startswith('cpprun')
    assert ('a: rank 0' in done.stdout) == started, (block, done)


def test_the_page_begins_with_one_command():
    assert PAGE.splitlines()[2] == '```sh' and PAGE.splitlines()[4] == '```'
