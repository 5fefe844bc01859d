"""Runs commands of cpprunctl that end by themselves."""

import subprocess

from launches import BIN

CTL = BIN / 'cpprunctl'
TAKES = 600  # seconds; bounds a hang, also on a busy machine


def ctl(*args, wrap=(), **options):
    """The ended command: exit code, stdout and stderr. Options: those of subprocess.run()."""
    command = [*wrap, CTL, *map(str, args)]
    options = {'capture_output': True, 'text': True, 'timeout': TAKES, 'check': False, **options}
    return subprocess.run(command, **options)


def output_of(*args, **options):
    """What a command prints that ends with 0."""
    done = ctl(*args, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refusal_of(*args, code=2, **options):
    """The stderr of a command that ends with this code."""
    done = ctl(*args, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stderr
