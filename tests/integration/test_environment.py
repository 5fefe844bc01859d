"""Broken environments: folders, limits, variables, disks."""

import contextlib
import os
import re
import resource
import shutil
import signal
import subprocess

import pytest
from conftest import BIN, PYTHON, as_another_user, has_no_traces, has_own_mounts, poll
from launches import ROOT, read_to_end


def expect_message(running, *texts, lines=2):
    """Ends with 1 immediately, with a few lines of its own that contain these texts."""
    assert running.done(20) == 1, running.output
    for text in texts:
        assert str(text) in running.err, running.err
    own = [line for line in running.err.splitlines() if line.startswith(('error: ', 'warning: '))]
    assert 1 <= len(own) <= lines, running.err
    assert has_no_traces(running.err)


def test_file_in_place_of_the_log_folder(jobs):
    (jobs.folder / 'logs').touch()
    expect_message(jobs.cpprun('--log-dir=logs', jobs.sh(':')), 'logs', 'a file is in its place')
    expect_message(jobs.cpprun('--log-dir=logs/below', jobs.sh(':')), 'logs/below')


def as_on(kernel):
    """A command prefix: system calls that the kernel lacks fail."""
    wrap = (PYTHON, ROOT / 'tests/support/old_kernel.py', kernel)
    if subprocess.run([*wrap, 'true'], check=False).returncode != 0:
        pytest.skip('the kernel takes no filter for system calls')
    return wrap


@pytest.mark.parametrize('kernel', ['5.8', '5.10', 'emulator'])
def test_workers_of_an_old_kernel_inherit_no_descriptors(jobs, kernel):
    code = """import os
listed = os.listdir('/proc/self/fd')
inherited = [fd for fd in listed if os.path.exists(f'/proc/self/fd/{fd}')]
print('open:', sorted(inherited))"""
    running = jobs.cpprun(jobs.py(code), wrap=as_on(kernel))
    assert running.done(20) == 0, running.output
    assert running.out == "open: ['0', '1', '2']\n"


def test_emulator_without_handles_of_children_starts_and_restarts_workers(jobs):
    # Worker 1 fails in round 0; worker 0 ends only because it is stopped.
    fails = 'case $TORCHELASTIC_RESTART_COUNT$RANK in 01) exit 3;; 00) sleep 1000;; esac'
    code = fails + '; echo rank $RANK'
    flags = ('--nproc-per-node=2', '--max-restarts=1', '--no-python')
    running = jobs.cpprun(*flags, 'sh', '-c', code, wrap=as_on('emulator'))
    assert running.done(20) == 0, running.output
    assert sorted(running.out.splitlines()) == ['rank 0', 'rank 1']
    missing = jobs.cpprun('--no-python', jobs.folder / 'missing', wrap=as_on('emulator'))
    assert missing.done(20) == 1
    assert 'missing: there is no such file' in missing.err


@pytest.mark.parametrize('folder', ['/proc/cpprun-logs', '/dev/full', '/dev/zero/x'])
def test_a_log_folder_that_cannot_be_written_is_named(jobs, folder):
    expect_message(jobs.cpprun(f'--log-dir={folder}', jobs.sh(':')), folder)


def test_read_only_log_folder(jobs):
    if not has_own_mounts():
        pytest.skip('needs root and mount namespaces')
    (jobs.folder / 'logs').mkdir()
    mount = 'mount -t tmpfs -o ro none "$0" && exec "$@"'
    wrap = ('unshare', '-m', 'sh', '-c', mount, jobs.folder / 'logs')
    running = jobs.cpprun('--log-dir=logs', jobs.sh(':'), wrap=wrap)
    expect_message(running, 'logs', 'Read-only file system')


def test_unwritable_log_folder_of_another_user(jobs):
    wrap = as_another_user(jobs)
    (jobs.folder / 'logs').mkdir(mode=0o700)
    running = jobs.cpprun('--log-dir=logs', jobs.sh(':'), wrap=wrap)
    expect_message(running, 'logs', 'Permission denied')


@pytest.fixture
def small_disk():
    """A command prefix that mounts a `disk` folder of 256 KiB below the command's own."""
    if not has_own_mounts():
        pytest.skip('a small disk needs root and mount namespaces')
    mount = 'mkdir -p disk && mount -t tmpfs -o size=256k none disk && exec "$@"'
    return ('unshare', '-m', 'sh', '-c', mount, 'sh')


@pytest.mark.parametrize('files', range(5, 12))
def test_log_files_that_cannot_be_made_stop_nothing(jobs, files):
    """A file system that has room for so many files and folders."""
    if not has_own_mounts():
        pytest.skip('needs root and mount namespaces')
    mount = f'mkdir -p disk && mount -t tmpfs -o nr_inodes={files} none disk && exec "$@"'
    running = jobs.cpprun('--redirects=3', '--log-dir=disk', jobs.sh('echo out'),
                          wrap=('unshare', '-m', 'sh', '-c', mount, 'sh'))
    assert running.done(20) == 0, running.output
    has_files = running.out == ''
    assert has_files or running.out == 'out\n'
    is_warned = 'their output goes to the console only' in running.err
    assert is_warned == (not has_files), running.output


@pytest.mark.parametrize('args', [('--tee=3',), ('--redirects=0', '--tee=1')])
def test_full_disk_stops_nothing(jobs, small_disk, args):
    code = (
        'import sys\nfor _ in range(20): sys.stdout.write(("x" * 99 + "\\n") * 1000)\n'
        'print("all written")'
    )
    running = jobs.cpprun(*args, '--log-dir=disk', jobs.py(code), wrap=small_disk)
    assert running.done(20) == 0, running.output
    assert 'all written' in running.out
    assert running.out.count('x' * 99) == 20_000
    assert running.err.count('No space left on device') == 1, running.err


def test_full_disk_hits_a_worker_that_writes_itself(jobs, small_disk):
    worker = jobs.sh('head -c 1000000 /dev/zero || exit 7')
    running = jobs.cpprun('--redirects=3', '--log-dir=disk', worker, wrap=small_disk)
    assert running.done(20) == 1, running.output
    assert 'exitcode  : 7' in running.err
    assert has_no_traces(running.err)


def test_full_disk_from_the_start(jobs, small_disk):
    *start, script, name = small_disk
    script = script.replace('exec', '{ cat /dev/zero >disk/x; } 2>&-; exec')
    wrap = (*start, script, name)
    running = jobs.cpprun('--log-dir=disk', '--tee=3', jobs.sh('echo out'), wrap=wrap)
    assert running.done(20) in (0, 1), running.output
    if running.process.returncode == 0:
        assert 'out' in running.out
    assert 'No space left on device' in running.err
    assert has_no_traces(running.err)


def test_full_disk_between_restarts(jobs, small_disk):
    worker = jobs.sh('head -c 100000 /dev/zero; exit 3')
    args = ('--redirects=3', '--log-dir=disk', '--max-restarts=5')
    running = jobs.cpprun(*args, worker, wrap=small_disk)
    assert running.done(30) == 1, running.output
    assert has_no_traces(running.err)


def test_paths_that_are_too_long_are_named(jobs):
    expect_message(jobs.cpprun('--log-dir=' + 'x' * 4096, jobs.sh(':')), 'too long')
    expect_message(jobs.cpprun('--log-dir=' + '/x' * 2048, jobs.sh(':')), 'too long', '--log-dir')
    expect_message(jobs.cpprun('y' * 4096 + '.py'), 'yyy')
    expect_message(jobs.cpprun('--no-python', '/y' * 2048), '/y/y')
    # As in Python, an unusable TMPDIR is skipped.
    assert jobs.cpprun(jobs.sh(':'), env={'TMPDIR': '/x' * 2048}).done(20) == 0


def test_long_names_of_runs_and_arguments(jobs):
    running = jobs.cpprun('--rdzv-id=' + 'é' * 500, '--log-dir=logs', jobs.sh('echo ok'))
    assert running.done(20) == 0, running.output
    running = jobs.cpprun(jobs.sh('echo ${#1}'), 'a' * 100_000)
    assert running.done(20) == 0, running.output
    assert '100000' in running.out


@pytest.mark.parametrize('value', ['/no/such/folder', '/proc', '', None])
def test_an_unusable_tmpdir_is_skipped(jobs, value):
    """As in Python: skips an unusable TMPDIR; /proc is always unwritable."""
    running = jobs.cpprun(jobs.sh('echo ok'), env={'TMPDIR': value})
    assert running.done(20) == 0, running.output
    assert running.out == 'ok\n'


def test_no_writable_temporary_folder(jobs):
    if not has_own_mounts():
        pytest.skip('needs root and mount namespaces')
    make = 'mount -t tmpfs -o ro none "$TMPDIR" && exec "$@"'
    running = jobs.cpprun(jobs.sh(':'), wrap=('unshare', '-m', 'sh', '-c', make, 'sh'))
    if running.done(20) != 0:
        expect_message(running, jobs.tmp)


def test_descriptors_of_one_worker(jobs):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (10, 10))

    running = jobs.cpprun(jobs.sh('echo ok'), preexec_fn=few)
    assert running.done(20) == 1
    assert ' 1 worker needs up to 37;' in running.err, running.output


@pytest.mark.parametrize('limit', [3, 4, 6, 8, 10, 12, 16, 20, 24, 32])
def test_a_low_limit_of_descriptors_is_named_or_suffices(jobs, limit):
    """The error names the need, unless the limit sufficed."""

    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))

    running = jobs.cpprun('--nproc-per-node=8', jobs.sh('echo ok'), preexec_fn=few)
    code = running.done(20)
    if limit == 3:
        assert code != 0  # not even the shared libraries can be opened
    elif code == 0:
        assert running.out == 'ok\n' * 8
    else:
        assert code == 1, running.output
        assert 'ulimit -n' in running.err or 'Too many open files' in running.err, running.err
        assert has_no_traces(running.err), running.err
    assert jobs.wait_until_gone() == []


def test_too_few_descriptors_for_many_workers_names_the_number(jobs):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))

    running = jobs.cpprun('--nproc-per-node=64', '--tee=3', jobs.sh(':'), preexec_fn=few)
    assert running.done(20) == 1, running.output
    assert '64 workers' in running.err
    assert 'ulimit -n' in running.err
    assert has_no_traces(running.err)
    assert jobs.wait_until_gone() == []


def test_soft_limit_is_raised_or_enough_and_workers_keep_theirs(jobs):
    def few():
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 4096))

    running = jobs.cpprun('--nproc-per-node=16', jobs.sh('ulimit -Sn'), preexec_fn=few)
    if running.done(20) == 0:
        assert running.out == '64\n' * 16, 'workers must have the limits of the launcher'
    else:
        assert 'ulimit -n' in running.err


def test_no_processes_left(jobs):
    """RLIMIT_NPROC does not bind root, so this runs as another user."""
    if os.geteuid() != 0 or not shutil.which('setpriv'):
        pytest.skip('needs root and setpriv, to be somebody else')
    os.chmod(jobs.tmp, 0o777)
    for path in (jobs.folder, *jobs.folder.parents):
        if path.stat().st_uid == 0 and path.stat().st_mode & 0o011 != 0o011:
            path.chmod(path.stat().st_mode | 0o011)
    wrap = ('setpriv', '--reuid=64321', '--regid=64321', '--clear-groups', 'prlimit', '--nproc=3')
    probe = subprocess.run([*wrap, BIN / 'cpprun', '--version'], check=False, capture_output=True)
    if probe.returncode != 0:
        pytest.skip('another user may not start this cpprun')
    running = jobs.cpprun('--nproc-per-node=8', '--no-python', '/bin/true', wrap=wrap)
    assert running.done(20) != 0, running.output
    assert 'Resource temporarily unavailable' in running.err, running.err
    assert has_no_traces(running.err), running.err
    poll(lambda: jobs.wait_until_gone(0) == [], 2, 'the end of all')


@pytest.mark.parametrize('limit', ['--nproc=2', '--nproc=3', '--nproc=4', '--as=30000000'])
def test_a_limit_that_allows_no_threads_is_named(jobs, limit):
    wrap = (*as_another_user(jobs), 'prlimit', limit)
    probe = subprocess.run([*wrap, BIN / 'cpprun', '--version'], check=False, capture_output=True)
    if probe.returncode != 0:
        pytest.skip('the limit is too low to load the program')
    running = jobs.cpprun('--nproc-per-node=3', '--no-python', '/bin/true', wrap=wrap)
    assert running.done(20) == 1, running.output
    name = '; the limits are ulimit -u' if 'nproc' in limit else 'ulimit -v 29296, '
    assert running.err.count(name) == 1, running.err
    assert 'does not answer' not in running.err and 'too many file' not in running.err
    assert has_no_traces(running.err), running.err
    assert jobs.wait_until_gone() == []


def test_workers_run_in_an_empty_environment(jobs):
    worker = jobs.sh('echo "$RANK $WORLD_SIZE $MASTER_ADDR"')
    running = jobs.cpprun('--nproc-per-node=2', worker, wrap=('env', '-i'))
    assert running.done(20) == 0, running.output
    assert sorted(running.out.splitlines()) == ['0 2 127.0.0.1', '1 2 127.0.0.1']


def test_empty_environment_with_python(jobs):
    script = jobs.folder / 'x.py'
    script.write_text('print("from python")')
    running = jobs.cpprun(script, wrap=('env', '-i'))
    assert running.done(20) == 0, running.output
    assert 'from python' in running.out


@pytest.mark.parametrize('name', ['HOME', 'USER', 'LANG', 'TERM'])
def test_a_job_runs_without_an_optional_variable(jobs, name):
    running = jobs.cpprun(jobs.sh('echo ok'), env={name: None})
    assert running.done(20) == 0, running.output


@pytest.mark.parametrize('value', [None, '', '/no/such'])
def test_a_path_without_python_is_reported(jobs, value):
    script = jobs.folder / 'x.py'
    script.write_text('print("from python")')
    running = jobs.cpprun(script, env={'PATH': value})
    code = running.done(20)
    if value is None:  # the C library's own default
        assert code == 0, running.output
    else:
        assert code == 1
        assert 'python3' in running.err
        assert 'PATH' in running.err
        assert has_no_traces(running.err)


def test_workers_get_a_huge_environment(jobs):
    env = {f'FILL_{i}': 'x' * 1000 for i in range(1500)}
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh('echo "$FILL_1499" | wc -c'), env=env)
    assert running.done(20) == 0, running.output
    assert running.out.split() == ['1001', '1001']
    assert jobs.wait_until_gone() == []


def test_environment_that_fits_the_launcher_but_no_worker(jobs):
    """The workers' variables make it too large for exec: the launcher reports it and does not
    crash."""
    worker = jobs.sh('echo ok')
    room = resource.getrlimit(resource.RLIMIT_STACK)[0] // 4
    if room > 1 << 24:
        pytest.skip('the limit on environments is too large to be reached')
    for fill in range(room, room // 2, -400):
        env = {f'FILL_{at}': 'x' * min(100_000, fill - at) for at in range(0, fill, 100_000)}
        with contextlib.suppress(OSError):
            running = jobs.cpprun(worker, env=env)
            break
    assert running.done(20) == 1, running.output
    text = ' '.join(running.err.split())
    assert re.search(r'arguments \(0 KiB\) and environment \(\d+ KiB\) are too long', text), text
    assert 'raise ulimit -s' in text, text
    assert has_no_traces(running.err)


def test_workers_get_variables_with_unusual_names_and_values(jobs):
    env = dict(jobs.env())
    env.update({'WITH SPACE': '1', 'ünï': 'cödé', 'EMPTY': '', 'LINES_IN_IT': 'a\nb'})
    running = jobs.cpprun(jobs.sh('printf "%s" "$LINES_IN_IT$EMPTY"'), env=env)
    assert running.done(20) == 0, running.output
    assert running.out == 'a\nb'


@pytest.mark.parametrize('args', [(), ('--nproc-per-node=2', '--tee=3')])
def test_deleted_working_folder(jobs, args):
    gone = jobs.folder / 'gone'
    gone.mkdir()
    shell = ('sh', '-c', f'cd "{gone}" && rmdir "{gone}" && exec "$@"', 'sh')
    running = jobs.cpprun(*args, jobs.sh('echo ok'), wrap=shell)
    assert running.done(20) == 0, running.output
    assert 'ok' in running.out


def test_relative_log_folder_below_a_deleted_one(jobs):
    gone = jobs.folder / 'gone'
    gone.mkdir()
    shell = ('sh', '-c', f'cd "{gone}" && rmdir "{gone}" && exec "$@"', 'sh')
    expect_message(jobs.cpprun('--log-dir=logs', jobs.sh(':'), wrap=shell), 'logs')


def test_log_folder_that_vanishes_while_running(jobs):
    """The round continues; the next one cannot start without its folder, and the launcher reports
    it."""
    wait = 'echo up >"$MARKS/up"; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done\n'
    worker = jobs.sh(wait + 'exit 3')
    running = jobs.cpprun('--log-dir=logs', '--tee=3', '--max-restarts=2', worker)
    jobs.mark('up')
    shutil.rmtree(jobs.folder / 'logs')
    (jobs.marks / 'go').touch()
    assert running.done(20) == 1, running.output
    assert 'logs' in running.err
    assert has_no_traces(running.err)
    assert jobs.wait_until_gone() == []


def test_temporary_folder_that_vanishes_while_running(jobs):
    worker = jobs.sh('echo up >"$MARKS/up"; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done')
    running = jobs.cpprun(worker)
    jobs.mark('up')
    shutil.rmtree(jobs.tmp)
    (jobs.marks / 'go').touch()
    assert running.done(20) == 0, running.output


def test_signals_ignored_or_blocked_by_the_parent(jobs):
    """nohup and other parents: workers get default dispositions and an empty mask."""
    code = (
        'import os, signal, sys\n'
        'signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n'
        'for n in (1, 2, 13, 15, 17): signal.signal(n, signal.SIG_IGN)\n'
        'os.execv(sys.argv[1], sys.argv[1:])'
    )
    wrap = (PYTHON, '-ISc', code)
    worker = jobs.sh("grep -E '^Sig(Blk|Ign)' /proc/self/status >\"$MARKS/sig\"; exit 3")
    running = jobs.cpprun('--max-restarts=1', worker, wrap=wrap)
    assert running.done(20) == 1, running.output
    assert [int(line.split()[1], 16) for line in jobs.mark('sig').splitlines()] == [0, 0]


def test_signals_that_the_parent_blocks_stop_the_job(jobs):
    code = (
        'import os, signal, sys\n'
        'signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\n'
        'os.execv(sys.argv[1], sys.argv[1:])'
    )
    worker = jobs.sh('echo up >"$MARKS/up"; exec sleep 60')
    running = jobs.cpprun('--nproc-per-node=2', worker, wrap=(PYTHON, '-ISc', code))
    jobs.mark('up')
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM, running.output
    assert jobs.wait_until_gone() == []


def test_small_stack_and_memory_limit(jobs):
    def small():
        resource.setrlimit(resource.RLIMIT_STACK, (256 * 1024, 256 * 1024))
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    running = jobs.cpprun('--nproc-per-node=4', jobs.sh('echo ok'), preexec_fn=small)
    assert running.done(20) == 0, running.output
    assert running.out == 'ok\n' * 4


def test_file_size_limit(jobs):
    """SIGXFSZ must not end the launcher: the log is cut, the job continues."""

    def small():
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    worker = jobs.sh('head -c 300000 /dev/zero | tr "\\0" x; echo')
    reader, writer = os.pipe()
    running = jobs.cpprun('--tee=1', '--log-dir=logs', worker, preexec_fn=small, stdout=writer)
    os.close(writer)
    got = read_to_end(reader)
    assert running.done(20) == 0, running.output
    assert got.count(b'x') == 300_000
    assert 'File too large' in running.err
