"""cpprunctl's command line: completion in real shells, and the manual page covers every command and
option."""

import pathlib
import re
import shutil
import subprocess

import pytest
from cpprunctl import CTL, TAKES, output_of, refusal_of
from launches import skip_unless_built

MAN = pathlib.Path(__file__).resolve().parents[2] / 'packaging/man/cpprunctl.1'


@pytest.fixture(autouse=True)
def built():
    skip_unless_built()


def test_misspelled_command_is_named():
    assert refusal_of('statsu') == "error: unknown command 'statsu'\nhint: did you mean 'status'?\n"
    assert "unknown command 'nonsense'\nhint: the commands are " in refusal_of('nonsense')
    assert 'the commands are' in refusal_of('foo'), 'top is not near'
    assert "did you mean 'status'?" in refusal_of('describe')


def test_missing_command_lists_all_commands():
    shown = refusal_of()
    assert shown == output_of('--help')
    groups = ['Look at running jobs:', 'Change a running job:', 'Before a job', 'Servers']
    places = [shown.index(group) for group in groups]
    assert places == sorted(places) and shown.index('  ps ') < shown.index('  serve ')
    assert 'Subcommands:' not in shown, 'each command has its group'
    assert '--help TEXT' not in shown and 'cpprunctl [OPTIONS] COMMAND' in shown
    shown = output_of('logs', '--help')
    assert 'INT' not in shown and '-n,--lines N (10)' in shown


@pytest.mark.parametrize('args, message', [
    (('snapshot', 'prune', '.', '--keep', '0'), "--keep: '0' is not a number above 0"),
    (('snapshot', 'prune', '.', '--keep', 'x'), "--keep: 'x' is not a number above 0"),
    (('snapshot', 'convert', 'a', 'b', '--step=-3'), "--step: '-3' is not a number from 0 on"),
    (('doctor', '--port', '70000'), "--port: '70000' is not a number from 1 to 65535"),
    (('top', '--delay', '0'), "--delay: '0' is not a number from 0.1 to 3600"),
    (('chaos', '--seeds', 'x', 'p', 'c'), "--seeds: 'x' is not a number from 1 to 1000000"),
])
def test_invalid_number_is_named(args, message):
    assert refusal_of(*args).splitlines()[0] == 'error: ' + message


@pytest.mark.parametrize('args, message', [
    (('logs', '--job', 'x'),
     "error: unknown option --job\nhint: the job's name stands by itself here\n"),
    (('ps', '--jsn'), 'error: unknown option --jsn\nhint: did you mean --json?\n'
                      'usage: cpprunctl ps --help explains the command\n'),
    (('signal', '--rank', 'x'), "error: invalid --rank 'x'\n"),
    (('pid', '--rank'), 'error: --rank needs a value\n'),
    (('top', '--sort', 'size'), "error: invalid --sort 'size'\nhint: it is one of "),
    (('--color=pink', 'ps'), "error: invalid --color 'pink'\nhint: it is one of "),
    (('doctor', '--nnodes', '2'), 'error: --nnodes needs --endpoint\n'),
    (('stop', '--here', '--endpoint', 'a:1'), 'error: --here and --endpoint do not go together\n'),
    (('snapshot', 'list', 'x'), "error: unknown command 'list'\nhint: did you mean 'ls'?\n"),
    (('list',), "error: unknown command 'list'\nhint: did you mean 'ps'?\n"),
    (('snapshot', 'verify'), 'error: path is missing\n'
                             'usage: cpprunctl snapshot verify --help explains the command\n'),
])
def test_wrong_option_is_explained(args, message):
    assert refusal_of(*args).startswith(message)


def test_help_is_a_command_too():
    assert output_of('help') == output_of('--help')
    assert output_of('help', 'snapshot', 'ls') == output_of('snapshot', 'ls', '--help')


def test_explain_only_warns_of_a_missing_script():
    text = output_of('explain', 'torchrun', '--nnodes=2', '--nproc-per-node=8', 'no-such-script.py')
    assert text.startswith('command     ') and 'workers     2 nodes x 8 = 16\n' in text
    assert 'warning: no-such-script.py does not exist here\n' in text
    assert 'A command line follows, as in' in output_of('explain', '--help')


def completed(line):
    """What bash offers for the last word of this line."""
    words = line.split(' ')
    script = (f'eval "$("{CTL}" completion bash)"; COMP_WORDS=({" ".join(map(repr, words))}); '
              f'COMP_CWORD={len(words) - 1}; _cpprunctl; printf "%s\\n" "${{COMPREPLY[@]}}"')
    done = subprocess.run(['bash', '-c', script], capture_output=True, text=True, timeout=TAKES,
                          check=True)
    assert not done.stderr
    return done.stdout.split()


def test_bash_completes():
    assert 'status' in completed('cpprunctl ')
    assert completed('cpprunctl stat') == ['status']
    assert '--rdzv-endpoint' in completed('cpprunctl status --')
    assert completed('cpprunctl snapshot pru') == ['prune']
    assert completed('cpprunctl snapshot prune dir --keep') == ['--keep', '--keep-every']


@pytest.mark.parametrize('shell', ['zsh', 'fish'])
def test_other_shells_accept_their_scripts(shell):
    script = output_of('completion', shell)
    assert 'status' in script and 'prune' in script
    if shutil.which(shell):
        subprocess.run([shell, '-n'], input=script, text=True, check=True, timeout=TAKES)


def test_manual_page_has_every_command_and_option():
    page = MAN.read_text().replace('\\-', '-')
    commands = [each for each in completed('cpprunctl ') if each != 'help']
    assert len(commands) > 12
    for command in commands:
        assert re.search(rf'^\.(B|BI|BR) "?{command}\b', page, re.M), f'{command} is missing'
        for option in completed(f'cpprunctl {command} --'):
            assert option == '--help' or option in page, f'{command} {option} is not in the page'
