"""Texts of workers and peers that cpprun quotes reach terminals, files and JSON without characters
that a terminal carries out, or that change the direction of text."""

import http.server
import json
import os
import subprocess
import threading

import pytest

from nodes import BIN

HARMFUL = '\x1b[2J\x07\x9b\u202e\u2066\u061c'
CLEAN = '?[2J?????'


def is_harmless(text):
    return not any(c in text for c in '\x1b\x07\x7f\x9b\u202e\u2066\u061c')


def run(program, *args):
    known = {k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'TORCHELASTIC_'))}
    return subprocess.run([str(BIN / program), *args], capture_output=True, text=True, env=known,
                          timeout=100)


def test_failure_summary_quotes_a_worker_harmlessly(tmp_path):
    report = {'message': f'it printed {HARMFUL} first', 'extraInfo': {
        'py_callstack': f'Traceback: it printed {HARMFUL} first', 'timestamp': '1'}}
    error = tmp_path / 'error.json'
    error.write_text(json.dumps({'message': report}))
    script = f'printf "%s" "{HARMFUL}"; cp {error} $TORCHELASTIC_ERROR_FILE; exit 3'
    ended = run('cpprun', '--standalone', '--nproc-per-node=1', f'--log-dir={tmp_path}',
                '--no-python', 'sh', '-c', script)
    assert ended.returncode == 1
    assert ended.stderr.count(f'it printed {CLEAN} first') >= 2 and is_harmless(ended.stderr)
    files = [file for file in tmp_path.rglob('*.json*') if file != error]
    assert len(files) >= 2 and all(is_harmless(file.read_text()) for file in files)
    assert ended.stdout == HARMFUL, 'output itself stays as it is'


class FalseCoordinator(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        node = {'name': HARMFUL, 'state': HARMFUL, 'address': HARMFUL, 'nproc': 1}
        job = {'phase': HARMFUL, 'why_no_round': HARMFUL, 'nodes': [node]}
        body = json.dumps({'jobs': {HARMFUL: job}}, ensure_ascii=False).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def false_coordinator():
    server = http.server.HTTPServer(('127.0.0.1', 0), FalseCoordinator)
    # cpprunctl accepts an answer of HTTP/1.1 only.
    FalseCoordinator.protocol_version = 'HTTP/1.1'
    FalseCoordinator.close_connection = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f'127.0.0.1:{server.server_port}'
    server.shutdown()
    thread.join()


@pytest.mark.parametrize('more', [(), ('--json',), ('another',)])
def test_status_of_a_false_coordinator_is_harmless(false_coordinator, more):
    if not (BIN / 'cpprunctl').exists():
        pytest.skip('cpprunctl is not built')
    shown = run('cpprunctl', 'status', '--rdzv-endpoint', false_coordinator, *more)
    assert (shown.returncode == 0) == (more != ('another',)), shown.stderr
    assert is_harmless(shown.stdout + shown.stderr)
    assert '?[2J' in shown.stdout + shown.stderr or '\\u001b' in shown.stdout
