"""Output of workers: large, broken, binary, or without a reader."""

import os
import select
import signal
import subprocess
import time

import pytest
from conftest import BIN, has_no_traces, poll, read_bytes
from launches import read_to_end

TEE = ('--tee=3', '--log-dir=logs')


def logs(jobs, rank, name='stdout.log'):
    return next(jobs.folder.glob(f'logs/*/attempt_0/{rank}/{name}'))


def test_much_output_is_complete_in_bounded_memory(jobs):
    """100 MB of lines of two workers: complete, whole lines, in bounded memory."""
    count, size = 500_000, 100
    code = (
        'import os, sys\n'
        'line = (os.environ["RANK"] * 99 + "\\n").encode()\n'
        f'block = line * 1000\nfor _ in range({count // 1000}): sys.stdout.buffer.write(block)\n'
    )
    running = jobs.cpprun('--nproc-per-node=2', jobs.py(code))
    peak = 0
    while running.process.poll() is None:
        status = read_bytes(f'/proc/{running.pid}/status').decode()
        if 'VmHWM:' in status:
            peak = max(peak, int(status.split('VmHWM:')[1].split()[0]))
        assert running.seconds < 600
        poll(lambda: True)
    assert running.done() == 0
    seen = {b'0' * 99: 0, b'1' * 99: 0}
    with open(running.out_path, 'rb') as file:
        for line in file:
            seen[line.rstrip(b'\n')] += 1
    assert seen == {b'0' * 99: count, b'1' * 99: count}
    assert os.path.getsize(running.out_path) == 2 * count * size
    assert 0 < peak < 40_000, f'{peak} KiB'


@pytest.mark.parametrize('args', [(), ('--nproc-per-node=2',), TEE], ids=['one', 'two', 'tee'])
def test_every_byte_is_passed(jobs, args):
    code = (
        'import os, sys\n'
        'if os.environ["RANK"] == "0": sys.stdout.buffer.write(bytes(range(256)) * 400 + b"\\n")'
    )
    running = jobs.cpprun(*args, jobs.py(code))
    assert running.done(20) == 0, running.output
    want = bytes(range(256)) * 400 + b'\n'
    shown = running.out_path.read_bytes()
    if args == TEE:
        assert logs(jobs, 0).read_bytes() == want
        shown = shown.replace(b'[default0]:', b'')
        want = want.replace(b'\r', b'\n')  # the end of a progress bar's state
    assert shown == want


def test_output_without_newline(jobs):
    code = 'import sys; sys.stdout.write("x" * 300_000)'
    running = jobs.cpprun('--nproc-per-node=2', *TEE, jobs.py(code))
    assert running.done(20) == 0, running.output
    assert running.out.count('x') == 600_000
    assert logs(jobs, 0).read_bytes() == b'x' * 300_000
    assert logs(jobs, 1).read_bytes() == b'x' * 300_000


def test_non_utf_8_text_in_the_summary(jobs):
    worker = jobs.sh('printf "\\377\\376bad\\033[31m\\n" >&2; exit 3')
    running = jobs.cpprun('--nproc-per-node=2', '--event-log-handler=console', worker)
    assert running.done(20) == 1, running.output
    assert 'Root Cause' in running.err
    assert has_no_traces(running.err)


@pytest.mark.parametrize('stream', [1, 2])
def test_worker_that_closes_its_stream_continues(jobs, stream):
    worker = jobs.sh(f'exec {stream}>&-; while [ ! -e "$MARKS/go" ]; do sleep 0.02; done; exit 0')
    running = jobs.cpprun('--nproc-per-node=2', '--tee=3', worker)
    poll(lambda: len(jobs.alive()) >= 4, what='launcher, reaper process and workers')
    (jobs.marks / 'go').touch()
    assert running.done(20) == 0, running.output


@pytest.mark.parametrize('args', [(), ('--nproc-per-node=2',), ('--tee=3',)])
def test_last_output_of_a_dying_worker_is_shown(jobs, args):
    code = (
        'import os, signal, sys\n'
        'sys.stdout.write("out " * 10000 + "last-out\\n"); sys.stderr.write("last-err\\n")\n'
        'sys.stdout.flush(); os.kill(os.getpid(), signal.SIGSEGV)'
    )
    running = jobs.cpprun(*args, jobs.py(code))
    assert running.done(20) == 1, running.output
    assert 'last-out' in running.out
    assert 'last-err' in running.err


def test_output_while_being_stopped_is_shown(jobs):
    worker = jobs.sh(
        'trap "echo stopped; exit 0" TERM; echo up >"$MARKS/up$RANK"; while :; do sleep 0.05; done'
    )
    running = jobs.cpprun('--nproc-per-node=2', worker)
    jobs.mark('up0'), jobs.mark('up1')
    running.send(signal.SIGTERM)
    running.done(20)
    assert running.out.count('stopped') == 2


def test_states_of_a_progress_bar_are_lines_with_tee(jobs):
    """As with torchrun. Elsewhere a carriage return would hide the prefix."""
    bar = 'for i in 10 20 30; do printf "\\r %s%%" $i; sleep 0.2; done; printf "\\r\\n"'
    running = jobs.cpprun('--nproc-per-node=2', '--tee=1', '--log-dir=logs', jobs.sh(bar))
    assert running.done(20) == 0, running.output
    assert sorted(running.out.splitlines()) == [
        f'[default{rank}]: {state}%' for rank in range(2) for state in (10, 20, 30)]
    (log, _) = jobs.folder.glob('logs/*/attempt_0/*/stdout.log')
    assert log.read_bytes() == b'\r 10%\r 20%\r 30%\r\n'


def test_head_ends_the_job(jobs):
    """`cpprun ... | head -1`: the reader ends, the workers get SIGPIPE, nothing remains."""
    worker = jobs.sh('while :; do echo line || exit 0; done')
    running = jobs.start(
        '/bin/sh', '-c', '"$0" "$@" | head -1', BIN / 'cpprun', '--nproc-per-node=2', worker
    )
    assert running.done(30) == 0
    assert running.out.splitlines().count('line') == 1
    assert 'closed by its reader' not in running.output
    assert has_no_traces(running.output)
    assert jobs.wait_until_gone(10) == []


def test_with_log_files_a_job_continues_without_its_reader_and_reports_it(jobs):
    worker = jobs.sh('i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i + 1)); done; exit 0')
    running = jobs.start(
        '/bin/sh', '-c', '"$0" "$@" | head -1', BIN / 'cpprun', '-t', '3', worker, is_split=True
    )
    assert running.done(30) == 0
    assert running.err.count('stdout was closed by its reader; the workers continue') == 1
    assert jobs.wait_until_gone(10) == []


@pytest.mark.parametrize('args', [(), ('--nproc-per-node=2',), ('--tee=3',)])
def test_a_job_succeeds_with_a_full_stdout(jobs, args):
    with open('/dev/full', 'wb') as full:
        worker = jobs.sh('echo text || :; echo x >"$MARKS/ran$RANK"')
        running = jobs.cpprun(*args, worker, stdout=full)
    assert running.done(20) == 0, running.output
    assert jobs.mark('ran0')
    assert has_no_traces(running.err)


@pytest.mark.parametrize('closed', ['>&-', '2>&-', '<&-', '<&- >&- 2>&-'])
@pytest.mark.parametrize('args', [[], ['--nproc-per-node=2'], ['--tee=3', '--log-dir=logs']])
def test_closed_streams_are_dev_null_in_workers(jobs, closed, args):
    """Workers get /dev/null there, never a descriptor of the launcher."""
    code = (
        'import os\n'
        'links = [os.readlink(f"/proc/self/fd/{fd}") for fd in range(3)]\n'
        'open(os.environ["MARKS"] + "/links" + os.environ["RANK"], "w").write(" ".join(links))\n'
        'print("out"); os.write(2, b"err\\n")'
    )
    shell = ('/bin/sh', '-c', f'exec "$0" "$@" {closed}')
    running = jobs.start(*shell, BIN / 'cpprun', *args, *jobs.py(code), is_split=True)
    assert running.done(20) == 0, running.output
    assert 'anon_inode' not in jobs.mark('links0')
    assert 'socket' not in jobs.mark('links0')
    if closed == '2>&-':
        assert 'out' in running.out
    if closed == '>&-':
        assert 'err' in running.err
    assert jobs.wait_until_gone() == []


def test_closed_streams_of_a_failing_job(jobs):
    shell = ('/bin/sh', '-c', 'exec "$0" "$@" <&- >&- 2>&-')
    running = jobs.start(*shell, BIN / 'cpprun', '--max-restarts=1', jobs.sh('exit 3'))
    assert running.done(20) == 1


def is_full(pipe):
    """Measures as a writer would: short writes leave unusable space in a pipe's pages."""
    writer = os.open(f'/proc/self/fd/{pipe}', os.O_WRONLY | os.O_NONBLOCK)
    try:
        return not select.select([], [writer], [], 0)[1]
    finally:
        os.close(writer)


def test_unread_pipe_blocks_only_for_a_while(jobs):
    """A blocked stdout blocks its writers; a signal ends all."""
    reader, writer = os.pipe()
    worker = jobs.sh('echo up >"$MARKS/up"; while :; do echo text; done')
    running = jobs.cpprun('--nproc-per-node=2', '--shutdown-timeout=1', worker, stdout=writer)
    os.close(writer)
    jobs.mark('up')
    poll(lambda: is_full(reader), what='a full pipe')
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM, running.output
    os.close(reader)
    assert jobs.wait_until_gone() == []


def test_lone_worker_with_both_streams_in_one_file_keeps_their_order(jobs):
    words = [f'{i} ' for i in range(200)]
    code = 'import os\nfor i in range(200): os.write(1 + i % 2, f"{i} ".encode())'
    with open(jobs.folder / 'both', 'wb') as both:
        running = jobs.cpprun(jobs.py(code), stdout=both, stderr=both)
        assert running.done() == 0
    assert (jobs.folder / 'both').read_text() == ''.join(words)


def test_lone_worker_without_a_reader_ends(jobs):
    """As for any program whose stdout and stderr are one broken pipe."""
    reader, writer = os.pipe()
    worker = jobs.sh('echo up >"$MARKS/up"; while echo text; do :; done')
    running = jobs.cpprun(worker, stdout=writer, stderr=writer)
    os.close(writer)
    jobs.mark('up')
    os.close(reader)
    assert running.done() == 1


def test_job_restarts_while_its_stderr_is_unread(jobs):
    """The launcher has a message then, and writes it when the reader continues."""
    reader, writer = os.pipe()
    worker = jobs.sh(
        'echo up >"$MARKS/attempt$TORCHELASTIC_RESTART_COUNT"\n'
        '[ "$TORCHELASTIC_RESTART_COUNT" = 1 ] && exit 0\n'
        '[ "$RANK" = 1 ] && exec sleep 60\n'
        'head -c 100000 /dev/zero | tr "\\0" x >&2; exit 3'
    )
    running = jobs.cpprun('--nproc-per-node=2', '--max-restarts=1', worker, stderr=writer)
    os.close(writer)
    poll(lambda: is_full(reader), what='a full pipe')
    jobs.mark('attempt1', 10)
    got = read_to_end(reader)
    assert running.done(20) == 0
    assert got.count(b'x') >= 100_000
    assert b'cpprun: rank 0 (' in got


def test_signalled_launcher_does_not_wait_for_a_reader(jobs):
    reader, writer = os.pipe()
    filler = os.open(f'/proc/self/fd/{writer}', os.O_WRONLY | os.O_NONBLOCK)
    worker = jobs.sh('echo up >"$MARKS/up"; exec sleep 60')
    running = jobs.cpprun('--nproc-per-node=1', worker, stderr=writer)
    os.close(writer)
    jobs.mark('up')
    try:
        while True:
            os.write(filler, b'x' * 4096)
    except BlockingIOError:
        pass
    running.send(signal.SIGTERM)
    assert running.done(10) == 128 + signal.SIGTERM
    os.close(filler)
    os.close(reader)
    assert jobs.wait_until_gone() == []


def test_slow_reader_gets_all_output_of_an_ending_job(jobs):
    """As for any program: only a signal makes the launcher end before the reader has read all."""
    reader, writer = os.pipe()
    worker = jobs.sh('head -c 300000 /dev/zero | tr "\\0" x; echo; exit 3')
    running = jobs.cpprun('--nproc-per-node=2', worker, stdout=writer)
    os.close(writer)
    poll(lambda: is_full(reader), what='a full pipe')
    assert running.process.poll() is None
    got = read_to_end(reader)
    assert running.done(20) == 1, running.output
    assert got.count(b'x') >= 300_000


def failed_job_with_unread_output(jobs):
    """Rank 0 has failed; the agent has read its output, and most of that is not written."""
    reader, writer = os.pipe()
    worker = jobs.sh(
        '[ "$RANK" = 1 ] && exec sleep 60\n'
        'head -c 150000 /dev/zero | tr "\\0" x; echo last; echo x >"$MARKS/ends"; exit 3'
    )
    running = jobs.cpprun('--nproc-per-node=2', worker, stdout=writer)
    os.close(writer)
    jobs.mark('ends')
    return running, reader


def test_reader_that_pauses_gets_all_output_of_a_failed_job(jobs):
    """A pager shows the traceback when its user gets there."""
    running, reader = failed_job_with_unread_output(jobs)
    time.sleep(5)  # longer than the end of a round waits for its output
    assert running.process.poll() is None, running.output
    got = read_to_end(reader)
    assert running.done(20) == 1, running.output
    assert got.count(b'x') == 150_000
    assert got.endswith(b'last\n')


def test_signal_ends_the_wait_for_the_reader_of_a_failed_job(jobs):
    running, reader = failed_job_with_unread_output(jobs)
    time.sleep(5)
    running.send(signal.SIGTERM)
    assert running.done(20) in (1, 128 + signal.SIGTERM), running.output
    os.close(reader)
    assert jobs.wait_until_gone() == []


def test_reader_sees_the_end_although_a_daemon_lives(jobs):
    """A pipe from the launcher ends with the launcher."""
    worker = jobs.sh('setsid sleep 60 & echo done')
    command = [BIN / 'cpprun', '--nproc-per-node=2', worker]
    done = subprocess.run(command, env=jobs.env(), cwd=jobs.folder, capture_output=True, timeout=30)
    assert done.stdout.count(b'done') == 2
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize(
    'make, named',
    [
        ('broken', 'valid JSON'),
        ('five-megabytes', 'larger than'),
        ('nested', 'nested'),
        ('list', 'message'),
        ('numbers', ''),
        ('binary', ''),
        ('folder', ''),
        ('fifo', ''),
        ('device', ''),
        ('loop', ''),
    ],
)
def test_unusual_error_files_do_no_harm(jobs, make, named):
    write = 'open(path, "wb").write({})'
    how = {
        'broken': write.format('b\'{"message": {"message": "oh\''),
        'five-megabytes': write.format('b\'{"message": "\' + b"x" * 5_000_000 + b\'"}\''),
        'nested': write.format('b\'{"message": \' + b"[" * 100_000 + b"]" * 100_000 + b"}"'),
        'list': write.format('b"[1, 2]"'),
        'numbers': write.format('b\'{"message": {"message": 1e999, "extraInfo": [-1]}}\''),
        'binary': write.format('bytes(range(256))'),
        'folder': 'os.mkdir(path)',
        'fifo': 'os.mkfifo(path)',
        'device': 'os.symlink("/dev/zero", path)',
        'loop': 'os.symlink(path, path)',
    }[make]
    code = f'import os, sys\npath = os.environ["TORCHELASTIC_ERROR_FILE"]\n{how}\nsys.exit(3)'
    own = jobs.folder / 'own.json'
    running = jobs.cpprun(jobs.py(code), env={'TORCHELASTIC_ERROR_FILE': str(own)})
    assert running.done(20) == 1, running.output
    assert 'exitcode  : 3' in running.err
    assert named in running.err, running.err
    assert has_no_traces(running.err)
    assert len(running.err) < 100_000
    if make == 'five-megabytes':
        assert not own.exists()
        assert f"error file could not be copied to '{own}'" in running.err


def test_folder_in_place_of_an_error_file_reports_nothing(jobs):
    (jobs.folder / 'own.json').mkdir()
    worker = jobs.sh('echo \'{"message": "boom"}\' >"$TORCHELASTIC_ERROR_FILE"; exit 3')
    own = str(jobs.folder / 'own.json')
    running = jobs.cpprun(worker, env={'TORCHELASTIC_ERROR_FILE': own})
    assert running.done(20) == 1
    assert 'boom' in running.err
    assert 'own.json' in running.err
    assert has_no_traces(running.err)


def test_stdin_reaches_the_worker(jobs):
    reader, writer = os.pipe()
    running = jobs.cpprun(jobs.sh('read -r line; echo "got $line"'), stdin=reader)
    os.close(reader)
    os.write(writer, b'words\n')
    os.close(writer)
    assert running.done(20) == 0
    assert 'got words' in running.out
