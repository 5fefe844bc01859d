"""--preload: workers forked from a process that has imported their modules.

A worker must not be able to detect whether it was forked, and nothing that the modules, the preload
process or the machine does may cost more than the time saved.
"""

import json
import os
import pathlib
import py_compile
import re
import signal
import subprocess
import sys
import zipfile

import pytest
from conftest import BIN, is_alive, kill, poll, read_bytes
from long_tests import RUN_LONG
from process_info import children_of
from terminal import Terminal
from torch_python import PYTHON

INFO = {'LOGLEVEL': 'INFO'}

# What a process can know of itself.
SHOW = """
import json, os, resource, signal, sys, __main__
def link(fd):
    text = os.readlink(f'/proc/self/fd/{fd}')
    is_file = text[0] == '/' and '/dev/' not in text
    return text[-10:-2] if is_file else text.split(':')[0]
def fields(*names):
    lines = dict(line.split(':', 1) for line in open('/proc/self/status'))
    return {name: lines[name].strip() for name in names}
def stream(f):
    return [f.name, f.mode, f.encoding, f.errors, f.line_buffering, f.write_through, f.isatty(),
            type(f.buffer).__name__, f.newlines]
SKIPPED = ('CPPRUN_TOKEN', 'CPPRUN_AGENT', 'CPPRUN_STORE', 'MASTER_PORT', 'TORCHELASTIC_RUN_ID',
           'TORCHELASTIC_ERROR_FILE')
seen = {
    'argv': sys.argv, 'path': sys.path, 'orig_argv': getattr(sys, 'orig_argv', None),
    'executable': sys.executable, 'prefix': [sys.prefix, sys.base_prefix],
    'site': getattr(sys.modules.get('sitecustomize'), 'VALUE', None),
    'flags': repr(sys.flags), 'xoptions': sys._xoptions,
    'main': {k: type(v).__name__ if k not in ('__file__', '__name__', '__package__') else v
             for k, v in vars(__main__).items() if k.startswith('__')},
    'spec': repr(getattr(__main__.__spec__, 'name', None)),
    'main is main': __main__ is sys.modules['__main__'],
    'environ': {k: v for k, v in os.environ.items() if k not in SKIPPED},
    'names': list(os.environ),
    'shown environ': sorted(open('/proc/self/environ').read().split('\\0')[:-1]) ==
        sorted(f'{k}={v}' for k, v in os.environ.items()),
    'cmdline': open('/proc/self/cmdline').read(),
    'folder': os.getcwd(), 'session': os.getsid(0) == os.getpid() == os.getpgid(0),
    'status': fields('Name', 'Umask', 'SigBlk', 'SigIgn', 'SigCgt', 'Threads', 'CapEff',
                     'NoNewPrivs', 'Cpus_allowed'),
    'exe': os.readlink('/proc/self/exe'),
    'limits': [resource.getrlimit(n) for n in range(16)],
    'nice': os.getpriority(os.PRIO_PROCESS, 0), 'oom': open('/proc/self/oom_score_adj').read(),
    'descriptors': {fd: link(fd) for fd in os.listdir('/proc/self/fd')
                    if os.path.exists(f'/proc/self/fd/{fd}')},
    'stdio': [stream(f) for f in (sys.stdin, sys.stdout, sys.stderr)],
    'same': [sys.stdin is sys.__stdin__, sys.stdout is sys.__stdout__],
    'death': __import__('ctypes').CDLL(None).prctl(2, __import__('ctypes').byref(
        number := __import__('ctypes').c_int())) or number.value,
    'hook': sys.excepthook is sys.__excepthook__,
    'term': str(signal.getsignal(signal.SIGTERM)), 'int': str(signal.getsignal(signal.SIGINT)),
    'cgroup': open('/proc/self/cgroup').read().count('cpprun-'),
    'recursion': sys.getrecursionlimit(), 'parent': open(f'/proc/{os.getppid()}/comm').read(),
}
rank = os.environ['RANK']
with open(os.environ['MARKS'] + f'/seen.{rank}', 'w') as file:
    json.dump(seen, file)
"""


def events_of(jobs):
    found = list(jobs.folder.glob('logs*/*/events.jsonl')) + list(jobs.tmp.glob('*/*/events.jsonl'))
    assert len(found) == 1, found
    whole = found[0].read_text().rpartition('\n')[0]  # a line may be there in part
    return [json.loads(line) for line in whole.splitlines()]


def forked(jobs):
    """By worker, in the order of their starts."""
    return [e['is_forked'] for e in events_of(jobs) if e['event'] == 'worker_started']


def spawned_because(jobs):
    return [e['spawned_because'] for e in events_of(jobs)
            if e['event'] == 'worker_started' and not e['is_forked']]


def start(jobs, preload, *args, n=1, flags=(), **options):
    command = ('--standalone', f'--nproc-per-node={n}', f'--preload={preload}', '--log-dir=logs')
    return jobs.cpprun(*command, *flags, *args, **options)


# Never runs. With it the workers wait for the preload of any of these.
USES = '\nif 0:\n    import json, decimal, heavy, odd, slow, library, numpy\n'


def script(jobs, code, name='script.py', uses=USES):
    path = jobs.folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code + uses if name.endswith('.py') else code)
    return path


def module(jobs, name, code):
    """A module beside the scripts."""
    return script(jobs, code, f'{name}.py', uses='')


def preload_process(job):
    def look():
        for child in children_of(job.pid):
            if read_bytes(f'/proc/{child}/cmdline').startswith(b'cpprun-preload'):
                return child
        return None

    return poll(look, what='the preload process')


def remove_logs(jobs):
    for path in sorted(jobs.folder.glob('logs/**/*'), reverse=True):
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


def seen_by(jobs, preload, *args, n=1, **options):
    job = start(jobs, preload, *args, n=n, **options)
    assert job.done() == 0, job.output
    is_forked = preload != 'off'
    assert forked(jobs) == [is_forked] * n, job.err
    remove_logs(jobs)
    seen = [json.loads(jobs.mark(f'seen.{rank}')) for rank in range(n)]
    for rank in range(n):
        (jobs.marks / f'seen.{rank}').unlink()
    return seen


@pytest.mark.parametrize(
    'args, place',
    [
        (('script.py', 'a', 'b c', ''), 'script.py'),
        (('./script.py',), 'script.py'),
        (('link.py', '--preload'), 'below/script.py'),
        (('below/script.py', '$$', 'x${local_rank}'), 'below/script.py'),
        (('-m', 'below.script', '-m'), 'below/script.py'),
        (('-m', 'package', 'x'), 'package/__main__.py'),
        (('folder', 'x'), 'folder/__main__.py'),
        (('--tee=3', 'script.py'), 'script.py'),
        (('--redirects=3', 'script.py'), 'script.py'),
        (('--pass-local-rank', '--virtual-local-rank', 'script.py'), 'script.py'),
    ],
    ids=lambda args: '-'.join(args) if isinstance(args, tuple) else '',
)
def test_a_forked_worker_sees_what_a_spawned_one_sees(jobs, args, place):
    script(jobs, SHOW, place)
    (jobs.folder / 'link.py').symlink_to(place)
    spawned = seen_by(jobs, 'off', *args, n=2)
    seen = seen_by(jobs, 'json,decimal', *args, n=2)
    for rank in range(2):
        for what, value in spawned[rank].items():
            assert seen[rank][what] == value, what


@pytest.mark.parametrize(
    'variables',
    [
        {'PYTHONFAULTHANDLER': '1'},
        {'PYTHONPATH': 'elsewhere'},
        {'PYTHONOPTIMIZE': '2', 'PYTHONHASHSEED': '3', 'PYTHONWARNINGS': 'error'},
        {'PYTHONSAFEPATH': '1'},
        {'LC_ALL': 'C', 'PYTHONUTF8': '0', 'PYTHONIOENCODING': 'latin-1:replace'},
        {'LONG': 'x' * 100_000, 'EMPTY': '', 'LOCAL_RANK': '7', 'RANK': '9'},
    ],
    ids=lambda variables: next(iter(variables)),
)
def test_variables_have_the_same_effect(jobs, variables):
    script(jobs, SHOW)
    spawned = seen_by(jobs, 'off', 'script.py', env=variables)
    seen = seen_by(jobs, 'json', 'script.py', env=variables)
    for what, value in spawned[0].items():
        assert seen[0][what] == value, what


def test_a_site_customisation_counts(jobs):
    script(jobs, 'VALUE = 7\nimport sys; sys.flag_of_the_site = 8', 'site/sitecustomize.py')
    script(jobs, SHOW + 'assert sys.flag_of_the_site == 8 and seen["site"] == 7')
    for preload in ('off', 'json'):
        seen_by(jobs, preload, 'script.py', env={'PYTHONPATH': str(jobs.folder / 'site')})


def test_forked_workers_have_the_virtual_environment(jobs):
    venv = jobs.folder / 'venv'
    subprocess.run([sys.executable, '-m', 'venv', '--without-pip', venv], check=True)
    script(jobs, SHOW)
    env = {'PYTHON_EXEC': str(venv / 'bin' / 'python')}
    spawned = seen_by(jobs, 'off', 'script.py', env=env)
    assert seen_by(jobs, 'json', 'script.py', env=env) == spawned
    assert spawned[0]['prefix'][0] == str(venv)


def test_archives_compiled_files_and_stdin(jobs):
    code = 'import sys\nprint(sys.argv, __file__ if "__file__" in vars() else None, __name__)\n'
    path = script(jobs, code)
    with zipfile.ZipFile(jobs.folder / 'a.zip', 'w') as archive:
        archive.writestr('__main__.py', code)
    py_compile.compile(str(path), str(jobs.folder / 'b.pyc'))
    for word in ('a.zip', 'b.pyc', '-'):
        outputs = []
        for preload in ('off', 'json'):
            with open(path) as stdin:
                job = start(jobs, preload, word, 'x', stdin=stdin)
                assert job.done() == 0, job.output
            outputs.append(job.out)
            assert forked(jobs) == [preload != 'off']
            remove_logs(jobs)
        assert outputs[0] == outputs[1] != ''


def test_a_terminal_is_one(jobs):
    script(jobs, SHOW)
    texts = []
    for preload in ('off', 'json'):
        command = (BIN / 'cpprun', '--standalone', f'--preload={preload}', '--log-dir=logs')
        screen = Terminal((*command, 'script.py'), env={**jobs.env(), 'TERM': 'xterm'},
                          cwd=jobs.folder)
        assert screen.done() == 0, screen.shown
        screen.close()
        assert forked(jobs) == [preload != 'off']
        remove_logs(jobs)
        texts.append(json.loads(jobs.mark('seen.0')))
        (jobs.marks / 'seen.0').unlink()
    for text in texts:
        text['descriptors'] = {fd: '/dev/pts' in to for fd, to in text['descriptors'].items()}
        assert text['stdio'][1][6], 'a terminal'
    assert texts[0] == texts[1]


ENDS = {
    'exception': 'def f():\n    raise ValueError("broken")\nf()',
    'chain': 'try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise KeyError("k") from e',
    'code': 'import sys; sys.exit(3)',
    'text': 'import sys; sys.exit("a text")',
    'at once': 'import os; os._exit(5)',
    'interrupt': 'import os, signal; os.kill(os.getpid(), signal.SIGINT); input()',
    'killed': 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)',
    'terminated': 'import os, signal; os.kill(os.getpid(), signal.SIGTERM)',
    'syntax': 'x = (',
    'assertion': 'assert False, "no"',
    'thread': 'import threading, time\n'
    'threading.Thread(target=lambda: (time.sleep(0.1), print("late"))).start()\n'
    'import atexit; atexit.register(print, "exit")\nraise RuntimeError("main")',
    'hook': 'import sys\nsys.excepthook = lambda *a: print("hook", a[0].__name__,'
    ' a[2].tb_lineno, a[2].tb_frame.f_code.co_name)\nraise OSError',
    'abort': 'import os; os.abort()',
    'recursion': 'def f(): f()\nf()',
}


@pytest.mark.parametrize('name', ENDS)
def test_a_forked_worker_ends_as_a_spawned_one(jobs, name):
    script(jobs, ENDS[name])
    texts = []
    for preload in ('off', 'json'):
        job = start(jobs, preload, 'script.py', flags=('--redirects=3',))
        code = job.done()
        (folder,) = jobs.folder.glob('logs/*/attempt_0/0')
        outputs = [(folder / name).read_text() for name in ('stdout.log', 'stderr.log')]
        texts.append((code, *(re.sub(r'repeated \d+ more', 'repeated', text) for text in outputs)))
        (end,) = (e for e in events_of(jobs) if e['event'] == 'worker_exited')
        texts[-1] += (end['exit_code'], end.get('signal'))
        assert forked(jobs) == [preload != 'off']
        remove_logs(jobs)
    assert texts[0] == texts[1]
    assert 'preload' not in texts[1][2]


@pytest.mark.parametrize('args', [('-m', 'absent'), ('absent/',), ('-m', 'broken')])
def test_programs_that_cannot_be_run(jobs, args):
    script(jobs, 'import nothing_of_that_name', 'broken.py')
    (jobs.folder / 'absent').mkdir()
    errors = []
    for preload in ('off', 'json'):
        job = start(jobs, preload, *args, flags=('--redirects=3',))
        assert job.done() == 1
        (path,) = jobs.folder.glob('logs/*/attempt_0/0/stderr.log')
        errors.append(path.read_text())
        assert forked(jobs) == [preload != 'off']
        remove_logs(jobs)
    assert errors[0] == errors[1] != ''


def test_restarts_fork_again(jobs):
    script(jobs, 'import os, signal, sys\nassert "decimal" in sys.modules\n'
                 'if os.environ["TORCHELASTIC_RESTART_COUNT"] != "3":\n'
                 '    if os.environ["RANK"] == "1": os.kill(os.getpid(), signal.SIGKILL)\n'
                 '    signal.pause()\n')
    job = start(jobs, 'decimal', 'script.py', n=3, flags=('--max-restarts=3',))
    assert job.done() == 0, job.output
    assert forked(jobs) == [True] * 12
    assert jobs.wait_until_gone() == []


def test_modules_are_imported_once(jobs):
    """Each import adds a line."""
    module(jobs, 'heavy', 'import os\nopen(os.environ["MARKS"] + "/imports", "a").write("x")')
    script(jobs, 'import heavy, os, sys\nsys.exit(os.environ["TORCHELASTIC_RESTART_COUNT"] != "2")')
    job = start(jobs, 'heavy', 'script.py', n=4, flags=('--max-restarts=2',))
    assert job.done() == 0, job.output
    assert jobs.mark('imports') == 'x'


def test_what_torch_imports_at_first_use_is_preloaded(jobs):
    script(jobs, """
import sys, torch
before = set(sys.modules)
torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=1.0)
print('imports', len(set(sys.modules) - before))
""")
    job = start(jobs, 'torch', 'script.py', env={'PYTHON_EXEC': PYTHON})
    assert job.done() == 0, job.output
    assert forked(jobs) == [True]
    assert job.out == 'imports 0\n'


@pytest.mark.parametrize('code', ['import absent_package', 'raise RuntimeError', 'VALUE = ('])
def test_what_cannot_be_imported_at_first_use_costs_nothing(jobs, code):
    script(jobs, '', 'torch/__init__.py', uses='')
    script(jobs, code, 'torch/_dynamo.py', uses='')
    script(jobs, 'import torch')
    job = start(jobs, 'torch', 'script.py')
    assert job.done() == 0, job.output
    assert forked(jobs) == [True]


REFUSED = {
    'thread': ('import threading, time\n'
               'threading.Thread(target=time.sleep, args=(600,), daemon=True).start()',
               r'odd: it has started 1 thread'),
    'exit': ('import sys; sys.exit(4)', r'odd: its import ended the program: SystemExit: 4'),
    'exit at once': ('import os; os._exit(4)',
                     r'has ended at the import of odd \(exit code 4\)'),
    'killed': ('import os; os.kill(os.getpid(), 9)', r'at the import of odd \(SIGKILL\)'),
    'error': ('raise ValueError("not today")', r'odd: its import failed: ValueError: not today'),
    'missing': ('import nothing_of_that_name', r'odd: its import failed: ModuleNotFoundError: No'),
    'fork': ('import os\nif os.fork() == 0: os.execvp("sleep", ["sleep", "600"])',
             r'odd: it has started a process'),
    'socket': ('import socket; s = socket.socket()', r'odd: it holds an open descriptor'),
    'folder': ('import os; os.chdir("/")', r'odd: it has changed the working directory'),
    'syntax': ('x = (', r'odd: its import failed: SyntaxError'),
}


@pytest.mark.parametrize('name', REFUSED)
def test_an_unfit_module_costs_the_preload_and_nothing_else(jobs, name):
    code, reason = REFUSED[name]
    module(jobs, 'odd', code)
    script(jobs, 'import os; print("rank", os.environ["RANK"], "runs")')
    job = start(jobs, 'json,odd', 'script.py', n=2)
    assert job.done() == 0, job.output
    assert len(re.findall(reason, job.err)) == 1, job.err
    assert sorted(job.out.splitlines()) == ['rank 0 runs', 'rank 1 runs']
    assert spawned_because(jobs) == ['process' if name == 'killed' else 'module'] * 2
    assert jobs.wait_until_gone() == []


def test_a_module_that_prints_or_forks_and_continues(jobs):
    """A child that continues the import must not serve too."""
    module(jobs, 'odd', 'import os\nprint("noise")\nif os.fork(): os.wait()\n')
    script(jobs, 'import os; print("rank", os.environ["RANK"], "runs")')
    job = start(jobs, 'odd', 'script.py', n=2)
    assert job.done() == 0, job.output
    assert sorted(job.out.splitlines()) == ['rank 0 runs', 'rank 1 runs']
    assert forked(jobs) == [True, True]


WAITS = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0))
signal.signal(signal.SIGUSR2, lambda *_: sys.exit(9))
with open(os.environ['MARKS'] + '/up.' + os.environ['RANK'] + '.' +
          os.environ['TORCHELASTIC_RESTART_COUNT'], 'w') as file:
    file.write(str(os.getpid()))
while True:
    time.sleep(0.05)
"""


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGSTOP, signal.SIGSEGV])
def test_the_end_of_the_preload_process_touches_no_worker(jobs, number):
    script(jobs, WAITS)
    job = start(jobs, 'json', 'script.py', n=2, flags=('--max-restarts=2',), env=INFO)
    pids = jobs.numbers(['up.0.0', 'up.1.0'])
    process = preload_process(job)
    kill(process, number)
    if number != signal.SIGSTOP:
        poll(lambda: preload_process(job) != process, what='another preload process')
    assert all(is_alive(pid) for pid in pids)
    kill(pids[0], signal.SIGUSR2)
    jobs.numbers(['up.0.1', 'up.1.1'])
    second = jobs.numbers(['up.0.1', 'up.1.1'])
    assert all(is_alive(pid) for pid in second)
    if number == signal.SIGSTOP:
        assert 'workers are spawned in this round: the preload process is stopped' in job.err
    kill(second[1], signal.SIGUSR2)
    third = jobs.numbers(['up.0.2', 'up.1.2'])
    for pid in third:
        kill(pid, signal.SIGUSR1)
    assert job.done() == 0, job.output
    is_second_forked = number != signal.SIGSTOP
    assert forked(jobs) == [True] * 2 + [is_second_forked] * 2 + [True] * 2
    exits = [e['exit_code'] for e in events_of(jobs) if e['event'] == 'worker_exited']
    assert exits.count(9) == 2 and exits.count(0) == 2
    assert jobs.wait_until_gone() == []


def test_a_preload_process_that_is_stopped_while_it_imports(jobs):
    module(jobs, 'slow', 'import os, signal\n'
                         'open(os.environ["MARKS"] + "/slow", "a").write(str(os.getpid()) + " ")\n'
                         'os.kill(os.getpid(), signal.SIGSTOP)')
    script(jobs, 'print("runs")')
    job = start(jobs, 'slow', 'script.py')
    assert job.done() == 0, job.output
    assert 'the preload process is stopped' in job.err
    assert spawned_because(jobs) == ['process']
    assert jobs.wait_until_gone() == []


def test_the_end_does_not_wait_for_an_import(jobs):
    module(jobs, 'slow', 'import os, time\nopen(os.environ["MARKS"] + "/slow", "w").write("x")\n'
                         'time.sleep(3600)')
    script(jobs, 'print("runs")')
    job = start(jobs, 'slow', 'script.py')
    jobs.mark('slow')
    job.send(signal.SIGTERM)
    assert job.done() in (75, 143), job.output
    assert jobs.wait_until_gone() == []


def test_changed_files_are_imported_again(jobs):
    module(jobs, 'library', 'VALUE = 1')
    code = ('import os, sys\n'
            'import library\n'
            'mark = os.environ["MARKS"] + "/value." + os.environ["TORCHELASTIC_RESTART_COUNT"]\n'
            'open(mark, "w").write(str(library.VALUE))\n' + WAITS)
    script(jobs, code)
    job = start(jobs, 'library', 'script.py', flags=('--max-restarts=2',), env=INFO)
    assert jobs.mark('value.0') == '1'
    first = int(jobs.mark('up.0.0'))
    module(jobs, 'library', 'VALUE = 2 + 20')
    kill(first, signal.SIGUSR2)
    assert jobs.mark('value.1') == '22'
    kill(int(jobs.mark('up.0.1')), signal.SIGUSR2)
    kill(int(jobs.mark('up.0.2')), signal.SIGUSR1)
    assert job.done() == 0, job.output
    assert forked(jobs) == [True] * 3
    assert len(re.findall('library.py has changed; importing again', job.err)) == 1


def test_a_changed_script_is_read_again(jobs):
    path = script(jobs, WAITS)
    job = start(jobs, 'json', 'script.py', flags=('--max-restarts=1',))
    first = int(jobs.mark('up.0.0'))
    path.write_text('print("changed")')
    kill(first, signal.SIGUSR2)
    assert job.done() == 0, job.output
    assert job.out == 'changed\n'
    assert forked(jobs) == [True, True]


def test_what_a_worker_leaves_behind_is_found(jobs):
    """A daemon of a forked worker, made without exec: its environment is shown as the worker's."""
    script(jobs, """
import os, time
rank = os.environ['RANK']
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(os.environ['MARKS'] + '/daemon.' + rank, 'w') as file:
            file.write(str(os.getpid()))
        time.sleep(3600)
    os._exit(0)
while not os.path.exists(os.environ['MARKS'] + '/daemon.' + rank):
    time.sleep(0.01)
if rank == '1':
    time.sleep(3600)
""")
    job = start(jobs, 'json', 'script.py', n=2)
    daemons = jobs.numbers(['daemon.0', 'daemon.1'])
    assert b'LOCAL_RANK=1' in read_bytes(f'/proc/{daemons[1]}/environ').split(b'\0')
    poll(lambda: not is_alive(daemons[0]), what='the end of the daemon of the worker that ended')
    assert is_alive(daemons[1])
    kill(job.pid)
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('victim', ['agent', 'agent while it imports'])
def test_nothing_outlives_a_killed_agent(jobs, victim):
    is_early = victim != 'agent'
    module(jobs, 'slow', 'import os, time\nopen(os.environ["MARKS"] + "/slow", "w").write("x")\n' +
           ('time.sleep(3600)' if is_early else ''))
    script(jobs, WAITS)
    job = start(jobs, 'slow', 'script.py', n=2)
    jobs.numbers(['up.0.0', 'up.1.0']) if not is_early else jobs.mark('slow')
    kill(job.pid)
    assert jobs.wait_until_gone() == []


def test_auto_imports_what_the_script_imports_and_runs_nothing(jobs):
    module(jobs, 'own', 'raise SystemExit("the user\'s own module")')
    package = jobs.folder / 'lib' / 'site-packages'
    script(jobs, 'VALUE = 1', 'lib/site-packages/alpha/__init__.py', uses='')
    script(jobs, 'VALUE = 2', 'lib/site-packages/alpha/deep.py')
    script(jobs, 'VALUE = 3', 'lib/site-packages/beta.py')
    script(jobs, 'VALUE = 4', 'lib/site-packages/gamma.py')
    script(jobs, """
import json
import alpha.deep as deep
try:
    from beta import VALUE
    import absent_package
except ImportError:
    pass
def later():
    import gamma
if __name__ == '__main__':
    import sys
    assert 'alpha.deep' in sys.modules and 'gamma' not in sys.modules
    assert VALUE == 3
    print('runs')
""", uses='')
    job = start(jobs, 'auto', 'script.py', env={'PYTHONPATH': str(package), **INFO})
    assert job.done() == 0, job.output
    assert forked(jobs) == [True]
    assert 'preload: alpha.deep,beta.VALUE imported in' in job.err
    assert job.out == 'runs\n'


def test_auto_without_a_package_ends_the_process(jobs):
    script(jobs, 'import json\nprint("runs")', uses='')
    job = start(jobs, 'auto', 'script.py', n=2, env=INFO)
    assert job.done() == 0, job.output
    assert job.out == 'runs\nruns\n'
    assert spawned_because(jobs) == ['script'] * 2
    assert 'the script imports no installed package' in job.err


SLOW = """
import os, time
open(os.environ['MARKS'] + '/slow', 'w').write('x')
while not os.path.exists(os.environ['MARKS'] + '/go'): time.sleep(0.01)
"""


@pytest.mark.parametrize('code', ['import json', 'from helpers import own', 'import package.sub'])
def test_a_script_without_the_modules_does_not_wait(jobs, code):
    """Its workers are spawned while the import lasts, and forked once it has ended."""
    module(jobs, 'slow', SLOW)
    module(jobs, 'helpers', 'own = 1')
    script(jobs, '', 'package/__init__.py', uses='')
    script(jobs, 'from . import __name__', 'package/sub.py', uses='')
    script(jobs, code + WAITS, uses='')
    job = start(jobs, 'slow', 'script.py', n=2, flags=('--max-restarts=1',), env=INFO)
    first = jobs.numbers(['up.0.0', 'up.1.0'])
    (jobs.marks / 'go').touch()
    poll(lambda: 'preload: slow imported' in job.err, what='the end of the import')
    kill(first[0], signal.SIGUSR2)
    for pid in jobs.numbers(['up.0.1', 'up.1.1']):
        kill(pid, signal.SIGUSR1)
    assert job.done() == 0, job.output
    assert forked(jobs) == [False] * 2 + [True] * 2
    assert spawned_because(jobs) == ['script'] * 2
    assert 'workers are spawned:' not in job.err


@pytest.mark.parametrize('code', [
    'import slow', 'import slow.part', 'from slow import x', 'def f():\n    import slow',
    'import helpers', 'from package import sub', 'from package.sub import x', 'import third_party',
    'import importlib\ndef f(): importlib.import_module(input())',
])
def test_a_script_that_may_import_the_modules_waits(jobs, code):
    """Directly, in a function, through local files, through an installed package, by name."""
    module(jobs, 'slow', SLOW + 'x = 1\n')
    module(jobs, 'helpers', 'def f(): import slow')
    script(jobs, 'import json', 'package/__init__.py', uses='')
    script(jobs, 'from .. import slow' if 0 else 'import slow\nx = 1', 'package/sub.py', uses='')
    script(jobs, '', 'lib/site-packages/third_party.py', uses='')
    script(jobs, 'print("runs")\ndef never():\n    ' + code.replace('\n', '\n    '), uses='')
    job = start(jobs, 'slow', 'script.py', env={'PYTHONPATH': 'lib/site-packages'})
    jobs.mark('slow')
    (jobs.marks / 'go').touch()
    assert job.done() == 0, job.output
    assert forked(jobs) == [True]


@pytest.mark.parametrize('value', ['', 'off'])
def test_values_that_turn_preload_off(jobs, value):
    script(jobs, 'print("runs")')
    job = start(jobs, value, 'script.py')
    assert job.done() == 0
    assert forked(jobs) == [False]


def test_programs_without_python_get_one_message(jobs):
    job = start(jobs, 'json', jobs.sh('true'), flags=('--no-python',), n=2)
    assert job.done() == 0
    assert job.err.count('--preload=json has no effect') == 1
    assert spawned_because(jobs) == ['not_python'] * 2


def test_an_interpreter_that_is_no_python(jobs):
    path = script(jobs, '#!/bin/sh\necho "$@"\nexit 0', 'no-python')
    path.chmod(0o755)
    script(jobs, '')
    job = start(jobs, 'json', 'script.py', env={'PYTHON_EXEC': str(path)})
    assert job.done() == 0
    assert job.out == '-u script.py\n'
    assert job.err.count('workers are spawned') == 1
    assert spawned_because(jobs) == ['interpreter']


def test_a_script_that_starts_python(jobs):
    """It may give each worker something else."""
    path = script(jobs, f'#!/bin/sh\nWORDS="$*" exec {sys.executable} "$@"', 'wrapper')
    path.chmod(0o755)
    script(jobs, 'import os; print(os.environ["WORDS"])')
    job = start(jobs, 'json', 'script.py', 'x', env={'PYTHON_EXEC': str(path)})
    assert job.done() == 0
    assert job.out == '-u script.py x\n'
    assert job.err.count('wrapper is no Python itself but starts one') == 1
    assert spawned_because(jobs) == ['interpreter']


def test_preload_is_an_option_with_a_variable(jobs):
    script(jobs, 'import sys; assert "decimal" in sys.modules')
    command = ('--standalone', '--log-dir=logs', 'script.py')
    job = jobs.cpprun(*command, env={'PET_PRELOAD': 'decimal'})
    assert job.done() == 0, job.output
    assert forked(jobs) == [True]
    job = jobs.cpprun('--preload=torch,,numpy', 'script.py')
    assert job.done() == 1
    assert 'error: --preload=torch,,numpy is no valid value\n' in job.err
    assert 'hint: write the names of up to 64 Python modules' in job.err


@pytest.mark.parametrize('call', [2, 3], ids=['first fork', 'second fork'])
def test_a_worker_that_cannot_be_forked_is_spawned(jobs, call):
    """The module refuses a fork as the kernel does when there are too many processes. The first one
    is the trial; a worker needs two."""
    module(jobs, 'odd', f"""
import errno, os
real, calls = os.fork, []
def fork():
    calls.append(1)
    if len(calls) >= {call}:
        raise BlockingIOError(errno.EAGAIN, 'Resource temporarily unavailable')
    return real()
os.fork = fork
""")
    script(jobs, 'import os; print("rank", os.environ["RANK"], "runs")')
    job = start(jobs, 'odd', 'script.py', n=2)
    assert job.done() == 0, job.output
    assert sorted(job.out.splitlines()) == ['rank 0 runs', 'rank 1 runs']
    assert spawned_because(jobs)[0] == 'fork'
    assert len(re.findall('a worker is spawned: .*Resource temporarily', job.err)) == 1
    assert jobs.wait_until_gone() == []


PIDS = [pathlib.Path(path) for path in ('/sys/fs/cgroup/pids', '/sys/fs/cgroup')]


@pytest.fixture
def pids_cgroup():
    """A folder of the pids controller, which limits processes and threads."""
    root = next((path for path in PIDS if os.access(path / 'cgroup.procs', os.W_OK)), None)
    folder = root and root / f'cpprun-test-{os.getpid()}'
    try:
        folder.mkdir()
        (folder / 'pids.max').write_text('max')
    except (OSError, AttributeError) as error:
        pytest.skip(f'no cgroup with a limit of processes can be made: {error}')
    yield folder
    poll(lambda: not (folder / 'cgroup.procs').read_text(), what='the end of all processes')
    folder.rmdir()


def test_a_limit_of_processes_that_is_reached_at_a_fork(jobs, pids_cgroup):
    """The limit leaves the preload process room for the process between and one worker."""
    script(jobs, WAITS)
    job = start(jobs, 'json', 'script.py', n=2, flags=('--max-restarts=1',))
    first = jobs.numbers(['up.0.0', 'up.1.0'])
    (pids_cgroup / 'cgroup.procs').write_text(str(preload_process(job)))
    (pids_cgroup / 'pids.max').write_text('3')
    kill(first[0], signal.SIGUSR2)
    second = jobs.numbers(['up.0.1', 'up.1.1'])
    (pids_cgroup / 'pids.max').write_text('max')
    for pid in second:
        kill(pid, signal.SIGUSR1)
    assert job.done() == 0, job.output
    assert forked(jobs) == [True, True, True, False]
    assert spawned_because(jobs) == ['fork']
    assert job.err.count('a worker is spawned: BlockingIOError') == 1
    assert jobs.wait_until_gone() == []


def test_two_restarts_at_once(jobs):
    """Two workers fail while two operators ask for a restart."""
    script(jobs, WAITS)
    job = start(jobs, 'json', 'script.py', n=3, flags=('--max-restarts=3', '--job-name=twice'))
    first = jobs.numbers([f'up.{rank}.0' for rank in range(3)])
    commands = [subprocess.Popen([BIN / 'cpprunctl', 'restart', 'twice'],
                                 env=jobs.env(), stdout=subprocess.DEVNULL) for _ in range(2)]
    for pid in (first[0], first[2]):
        kill(pid, signal.SIGUSR2)
    for command in commands:
        command.wait(200)
    asked = set()

    def ends():
        """A restart may still begin after these workers have been asked to end. Before its mark a
        worker handles no signal, and a second one kills it while it ends."""
        started = [e for e in events_of(jobs) if e['event'] == 'worker_started']
        ready = {mark.read_text() for mark in jobs.marks.glob('up.*')}
        for event in started:
            pid, is_newest = event['pid'], event['round'] == started[-1]['round']
            if is_newest and str(pid) in ready - asked and is_alive(pid):
                asked.add(str(pid))
                kill(pid, signal.SIGUSR1)
        return job.process.poll() is not None

    poll(lambda: not any(map(is_alive, first)), what='the end of the first round')
    poll(ends, what='the end of the job')
    assert job.done() == 0, job.output
    assert all(forked(jobs))
    rounds = [e['round'] for e in events_of(jobs) if e['event'] == 'worker_started']
    # The second restart may come while the workers of an earlier round are being started.
    assert rounds.count(rounds[-1]) == 3 and max(map(rounds.count, rounds)) == 3
    assert jobs.wait_until_gone() == []


MANY = 1000 if RUN_LONG else 40


def size_of(pid):
    """Descriptors, and private memory in KiB."""
    lines = read_bytes(f'/proc/{pid}/smaps_rollup').decode().splitlines()
    private = sum(int(line.split()[1]) for line in lines if line.startswith('Private_Dirty'))
    return len(os.listdir(f'/proc/{pid}/fd')), private


def test_restarts_do_not_add_up(jobs):
    """Measured in an early round, and many rounds later, when the agent has dealt with the start of
    the worker and the end of the last one."""
    script(jobs, 'import os, sys, time\n'
                 'at = int(os.environ["TORCHELASTIC_RESTART_COUNT"])\n'
                 f'if at in (5, {MANY}):\n'
                 '    path = os.environ["MARKS"]\n'
                 '    open(f"{path}/at.{at}", "w").write("x")\n'
                 '    while not os.path.exists(f"{path}/on.{at}"): time.sleep(0.01)\n'
                 f'sys.exit(at < {MANY})')
    job = start(jobs, 'json', 'script.py', flags=(f'--max-restarts={MANY}',))

    def sizes():
        return [size_of(pid) for pid in (job.pid, preload_process(job))]

    jobs.mark('at.5', 300)
    before = sizes()
    (jobs.marks / 'on.5').touch()
    jobs.mark(f'at.{MANY}', 300)
    poll(lambda: has_not_grown(before, sizes()), what=lambda: f'{before}, then {sizes()}')
    (jobs.marks / f'on.{MANY}').touch()
    assert job.done() == 0, job.output
    assert forked(jobs) == [True] * (MANY + 1)


def has_not_grown(sizes, later_sizes):
    return all(
        later_descriptors <= descriptors + 2 and later_memory <= memory * 1.3 + 1024
        for (descriptors, memory), (later_descriptors, later_memory) in zip(sizes, later_sizes)
    )


def test_random_numbers_differ_between_workers(jobs):
    script(jobs, 'import numpy, os, random, multiprocessing.process as p\n'
                 'open(os.environ["MARKS"] + "/n." + os.environ["RANK"], "w").write(repr('
                 '(random.random(), numpy.random.random(), bytes(p.current_process().authkey))))')
    job = start(jobs, 'numpy,random,multiprocessing', 'script.py', n=3)
    assert job.done() == 0, job.output
    assert forked(jobs) == [True] * 3, job.err
    drawn = [eval(jobs.mark(f'n.{rank}')) for rank in range(3)]
    for column in zip(*drawn):
        assert len(set(column)) == 3
