"""docs/reference/cpprunctl.md has a row for each verb, with each of its options."""

import re
import subprocess

import pytest
from launches import BIN, ROOT, skip_unless_built

PAGE = (ROOT / 'docs/reference/cpprunctl.md').read_text()
ROWS = {
    re.match(r'[a-z-]+(?: [a-z-]+)?(?=[ `\[]|$)', row[0])[0].strip(): row[1]
    for row in re.findall(r'^\| `([^`]+)` \|(.*)\|$', PAGE, re.M)
}
COMMON = {'help', 'endpoint', 'secret-file', 'tls-cert', 'tls-key', 'tls-ca'}  # in a sentence


def help_of(*words):
    skip_unless_built()
    done = subprocess.run(
        [BIN / 'cpprunctl', *words, '--help'], capture_output=True, text=True, timeout=100
    )
    return done.stdout


def verbs(text):
    """The words that stand alone at the start of an indented line, with their descriptions."""
    return re.findall(r'^  ([a-z][a-z-]*)  +[A-Z]', text, re.M)


def test_each_verb_has_a_row():
    found = verbs(help_of())
    assert len(found) > 15
    wanted = [verb for verb in found if verb != 'snapshot']
    wanted += [f'snapshot {verb}' for verb in verbs(help_of('snapshot'))]
    assert sorted(ROWS) == sorted(wanted)


@pytest.mark.parametrize('verb', sorted(ROWS))
def test_each_option_is_in_the_row_of_its_verb(verb):
    options = set(re.findall(r'--([a-z-]+)', help_of(*verb.split()).split('Options:')[-1]))
    options -= COMMON if verb in ('restart', 'drain', 'scale', 'stop') else {'help'}
    row = set(re.findall(r'--([a-z-]+)', ROWS[verb]))
    assert options - row == set(), verb
    assert row - options - COMMON == set(), verb
