"""/metrics: the documentation, the served values, and Prometheus' own checks."""

import json
import re
import subprocess
import urllib.parse
import urllib.request

import pytest
from http_client import page
from nodes import ROOT, Job, cluster, free_port, wait_for  # noqa: F401
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

PAGE = ROOT / 'docs/reference/metrics.md'
PROMETHEUS = ROOT / 'packaging/prometheus'
GRAFANA = ROOT / 'packaging/grafana/cpprun.json'
NAME = re.compile(r'\bcpprun_\w+')


OPEN = 'application/openmetrics-text; version=1.0.0; charset=utf-8'
PLAIN = 'text/plain; version=0.0.4; charset=utf-8'


def negotiated(port, accept):
    """Media type and text for a client with this Accept header."""
    query = urllib.request.Request(f'http://127.0.0.1:{port}/metrics', headers={'Accept': accept})
    with urllib.request.urlopen(query, timeout=10) as answer:
        assert answer.headers['Vary'] == 'Accept'
        return answer.headers['Content-Type'], answer.read().decode()


def families(text):
    """Name to (type, help), as served."""
    kinds = dict(re.findall(r'^# TYPE (\S+) (\S+)$', text, re.M))
    helps = dict(re.findall(r'^# HELP (\S+) (.+)$', text, re.M))
    assert kinds.keys() == helps.keys()
    return {name: (kinds[name], helps[name]) for name in kinds}


def page_rows():
    """Name to (type, labels column, meaning), as in the documentation."""
    rows = re.findall(r'^\| `(cpprun_\w+)` \| (\w+) \| (.*?)\| (.*) \|$', PAGE.read_text(), re.M)
    return {name: (kind, labels, meaning) for name, kind, labels, meaning in rows}


def series_names(text):
    return set(re.findall(r'^(cpprun_\w+)[ {]', text, re.M))


def tool(name):
    """Prometheus' own, from `tools/deps.sh --test` or from PATH."""
    unpacked = ROOT / 'build/prometheus/usr/bin' / name
    return str(unpacked) if unpacked.exists() else name


def promtool(*args, **how):
    command = [tool('promtool'), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, **how)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture
def broken_job(cluster):  # noqa: F811
    """Two nodes that have had a failure and run again. The job's name needs escaping."""
    job = Job(cluster, 2, run_id='odd"na\\me', restarts=3)
    for node in (0, 1):
        job.agent(node, '--max-node-losses=3')
    first = cluster.world(0, 1)
    cluster.exit_workers(3, first[0])
    cluster.world(0, 1, after=first)
    wait_for(lambda: {n['state'] for n in job.status().get('nodes', [])} == {'running'}, job.status)
    yield job
    cluster.finish()


def test_documentation_lists_the_served_metrics(broken_job):
    text = page(broken_job.port, '/metrics')
    served, listed = families(text), page_rows()
    assert {n: (kind, meaning) for n, (kind, _, meaning) in listed.items()} == served
    for name, (_, labels, _) in listed.items():
        found = {}
        for line in re.findall(rf'^{name}{{(.*)}} ', text, re.M):
            for label, value in re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', line):
                found.setdefault(label, set()).add(value)
        found.pop('run_id', None)
        named, _, values = labels.partition(':')
        if name != 'cpprun_job_outcome':  # not decided yet
            assert {f'`{label}`' for label in found} == set(filter(None, [named.strip()])), name
        if values and 'protocol.md' not in values:
            documented = set(re.findall(r'`(\w+)`', values))
            assert set().union(*found.values()) <= documented, name
            assert name == 'cpprun_job_outcome' or documented <= set().union(*found.values()), name


def test_promtool_accepts_the_metrics_and_they_match_status(broken_job):
    text = page(broken_job.port, '/metrics')
    promtool('check', 'metrics', input=text)
    label = 'run_id="odd\\"na\\\\me"'
    status = broken_job.status()
    for line in (f'cpprun_job_restarts_total{{{label},after="failure"}} {status["restarts_used"]}',
                 f'cpprun_job_round{{{label}}} {status["round"]}',
                 f'cpprun_job_nodes{{{label},state="running"}} 2',
                 f'cpprun_job_failures_total{{{label},class="user_error"}} 1',
                 f'cpprun_job_recovery_seconds_count{{{label}}} 1'):
        assert line + '\n' in text, text


def test_openmetrics_has_the_same_series_and_is_valid(broken_job):
    kind, text = negotiated(broken_job.port, 'application/openmetrics-text; version=1.0.0')
    assert kind == OPEN and text.endswith('# EOF\n') and text.count('# EOF') == 1
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert found['cpprun_job_restarts'].type == 'counter'
    assert found['cpprun_build'].type == 'info'
    for name in ('cpprun_job_recovery_seconds', 'cpprun_job_time_seconds'):
        assert found[name].unit == 'seconds'
    values = {(s.name, tuple(sorted(s.labels.items()))): s.value
              for family in found.values() for s in family.samples}
    names = {name for name, _ in values}
    assert names == series_names(page(broken_job.port, '/metrics')), 'queries hold for both formats'
    odd = ('run_id', 'odd"na\\me')
    assert values['cpprun_job_restarts_total', (('after', 'failure'), odd)] == 1
    assert values['cpprun_job_recovery_seconds_bucket', (('le', '+Inf'), odd)] == 1


@pytest.mark.parametrize('accept, kind', [
    ('', PLAIN), ('*/*', PLAIN), ('text/plain', PLAIN), ('text/plain;version=0.0.4', PLAIN),
    ('application/openmetrics-text', OPEN),
    # What Prometheus 2 and 3 send.
    ('application/openmetrics-text;version=1.0.0;q=0.5,application/openmetrics-text;version=0.0.1;'
     'q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2', OPEN),
    ('text/plain;q=0.9, application/openmetrics-text;q=0.5', PLAIN),
    ('application/openmetrics-text;q=0, text/plain;q=0.1', PLAIN),
])
def test_the_accept_header_chooses_the_format(cluster, accept, kind):  # noqa: F811
    job = Job(cluster, 1)
    agent = job.host(0)
    got, text = negotiated(job.port, accept)
    assert got == kind and text.endswith('# EOF\n') == (kind == OPEN)
    if kind == PLAIN:
        assert list(plain_families(text)) and '# UNIT' not in text
    cluster.exit_workers(0)
    agent.ends(0)


def test_alert_rules_are_valid_and_use_existing_metrics():
    promtool('check', 'rules', 'alerts.yml', cwd=PROMETHEUS)
    promtool('test', 'rules', 'alerts_test.yml', cwd=PROMETHEUS)
    promtool('check', 'config', '--syntax-only', 'prometheus.yml', cwd=PROMETHEUS)
    rules, cases = ((PROMETHEUS / f).read_text() for f in ('alerts.yml', 'alerts_test.yml'))
    alerts = re.findall(r'- alert: (\w+)', rules)
    assert alerts and all(f'alertname="{alert}"' in cases for alert in alerts)
    assert_known(NAME.findall(rules))


def test_grafana_dashboard_uses_existing_metrics(tmp_path):
    board = json.loads(GRAFANA.read_text())
    questions = [target['expr'] for panel in board['panels'] for target in panel['targets']]
    questions += [note['expr'] for note in board['annotations']['list']]
    assert len(questions) > 12
    variables = [v['definition'] for v in board['templating']['list'] if 'definition' in v]
    assert_known(NAME.findall(' '.join(questions + variables)))
    rules = [{'record': f'r{i}', 'expr': q.replace('$__rate_interval', '1m')}
             for i, q in enumerate(questions)]
    path = tmp_path / 'rules.yml'
    path.write_text(json.dumps({'groups': [{'name': 'board', 'rules': rules}]}))
    promtool('check', 'rules', str(path))


def assert_known(names):
    known = {name + part for name, (kind, _, _) in page_rows().items()
             for part in (('_bucket', '_sum', '_count') if kind == 'histogram' else ('',))}
    assert names and set(names) <= known, set(names) - known


def test_prometheus_scrapes_the_metrics(broken_job, tmp_path):
    port = free_port()
    config = (PROMETHEUS / 'prometheus.yml').read_text()
    config = config.replace('node0:29400', f'127.0.0.1:{broken_job.port}').replace('15s', '200ms')
    config = config.replace('alerts.yml', str(PROMETHEUS / 'alerts.yml'))
    (tmp_path / 'prometheus.yml').write_text(config)
    log = tmp_path / 'prometheus.log'
    with open(log, 'wb') as out:
        server = subprocess.Popen(
            [tool('prometheus'), f'--config.file={tmp_path}/prometheus.yml',
             f'--storage.tsdb.path={tmp_path}/data', f'--web.listen-address=127.0.0.1:{port}'],
            stdout=out, stderr=out)
    try:
        def ask(query):
            path = '/api/v1/query?' + urllib.parse.urlencode({'query': query})
            try:
                return json.loads(page(port, path))['data']['result']
            except OSError:
                return []
        wait_for(lambda: ask('up{job="cpprun"} == 1'), log.read_text, 60)
        found = wait_for(lambda: ask('cpprun_job_nodes{state="running"} == 2'), log.read_text, 30)
        assert found[0]['metric']['run_id'] == broken_job.run_id
        assert ask('cpprun_job_failures_total{class="user_error"}')[0]['value'][1] == '1'
        targets = json.loads(page(port, '/api/v1/targets'))['data']['activeTargets']
        assert [t['lastError'] for t in targets] == ['']
    finally:
        server.terminate()
        server.wait(20)
