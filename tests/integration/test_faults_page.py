"""docs/reference/faults.md: its files and commands work; its schema and the reader agree."""

import json
import os
import pathlib
import re
import subprocess

from launches import BIN

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / 'docs/reference/faults.md').read_text()
SCHEMA = json.loads((ROOT / 'docs/reference/faults.schema.json').read_text())


def write_files(folder):
    for name, text in re.findall(r'^`([\w.]+)`:\n\n```\w+\n(.*?)^```', PAGE, re.M | re.S):
        (folder / name).write_text(text)


def commands():
    """Each with the lines that it must print; … stands for anything."""
    for block in re.findall(r'^```console\n(.*?)^```', PAGE, re.M | re.S):
        for part in block.split('$ ')[1:]:
            command, *lines = part.splitlines()
            yield command, lines


def test_commands_of_the_page_print_its_output(jobs):
    write_files(jobs.folder)
    made = list(commands())
    assert len(made) >= 2
    for command, lines in made:
        env = jobs.env({'PYTHONPATH': str(ROOT / 'worker_sdk/python')})
        env['PATH'] = f'{BIN}:{env["PATH"]}'
        done = subprocess.run(
            ['bash', '-c', command],
            cwd=jobs.folder,
            env=env,
            capture_output=True,
            text=True,
            timeout=200,
        )
        output = (done.stdout + done.stderr).splitlines()
        assert done.returncode == 0, output
        for line in lines:
            wanted = '.*'.join(re.escape(piece) for piece in line.split('…'))
            assert any(re.fullmatch(wanted, seen) for seen in output), (line, output)
    assert os.path.exists(jobs.folder / 'out.xml')


def test_schema_knows_the_fields_of_the_reader():
    reader = (ROOT / 'common/faults/plan_json.cpp').read_text()
    calls = re.findall(r'allow_only\(\s*\{(.*?)\}', reader, re.S)
    known = [set(re.findall(r'"(\w+)"', keys)) for keys in calls]
    faults = SCHEMA['$defs']
    parts = [
        SCHEMA['properties'],
        faults['fault']['properties'],
        faults['fault']['properties']['at']['properties'],
        faults['expect']['properties'],
        faults['expect']['properties']['final_hash']['properties'],
    ]
    assert sorted(map(sorted, known)) == sorted(sorted(part) for part in parts)
