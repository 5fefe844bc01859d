"""Traces by OTLP/HTTP: the spans of a job at a collector, valid and once each; and their limits."""

import json
import re
import socket
import sys
import time

import pytest
from http_server import Handler, serving
from nodes import Job, cluster, free_port, wait_for  # noqa: F401

END_WAIT = 5  # limits::kTraceEndWait
PARENT = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'

PARENT_WRITER = """
import os, sys, time
rank, r = os.environ['RANK'], os.environ['CPPRUN_ROUND']
folder = os.environ['NODES_DIR']
with open(f'{folder}/tmp.{os.getpid()}', 'w') as out:
    out.write(os.environ.get('TRACEPARENT', ''))
os.rename(out.name, f'{folder}/parent.{r}.{rank}')
while True:
    for name, code in (('end', 0), (f'fail.{r}.{rank}', 3)):
        if os.path.exists(f'{folder}/{name}'):
            sys.exit(code)
    time.sleep(0.02)
"""
PROGRAM = ('--no-python', sys.executable, '-c', PARENT_WRITER)


class Collector(Handler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        answer = self.server.answers.pop(0) if self.server.answers else self.server.answer
        self.server.requests.append((self.path, dict(self.headers), answer))
        if answer == 200:
            self.server.bodies.append(json.loads(body))
        self.send_response(answer)
        self.end_headers()
        self.wfile.write(b'{}')


@pytest.fixture
def collector():
    with serving(Collector) as server:
        server.requests, server.bodies, server.answers, server.answer = [], [], [], 200
        yield server


def spans_of(collector, parent=None):
    """All spans by id, after the checks that hold for each of them."""
    found = {}
    for body in collector.bodies:
        for resource in body['resourceSpans']:
            for scope in resource['scopeSpans']:
                assert scope['scope']['name'] == 'cpprun'
                for span in scope['spans']:
                    assert span['spanId'] not in found, f'twice: {span}'
                    found[span['spanId']] = span
    for span in found.values():
        assert re.fullmatch('[0-9a-f]{32}', span['traceId']) and int(span['traceId'], 16)
        assert re.fullmatch('[0-9a-f]{16}', span['spanId']) and int(span['spanId'], 16)
        begin, end = span['startTimeUnixNano'], span['endTimeUnixNano']
        assert isinstance(begin, str) and isinstance(end, str) and int(begin) <= int(end)
        assert abs(int(end) / 1e9 - time.time()) < 3600, 'nanoseconds since 1970'
        assert span['kind'] == 1 and span['name'] and span['status']['code'] in (1, 2)
        above = span.get('parentSpanId')
        assert above in found or above == parent, f'no parent: {span}'
    assert len({span['traceId'] for span in found.values()}) <= 1
    return found


def named(spans, front):
    return sorted((s for s in spans.values() if s['name'].startswith(front)),
                  key=lambda s: int(s['startTimeUnixNano']))


def attributes(span):
    return {a['key']: next(iter(a['value'].values())) for a in span['attributes']}


def received_parents(cluster, number, ranks):  # noqa: F811
    paths = [cluster.folder / f'parent.{number}.{rank}' for rank in ranks]
    wait_for(lambda: all(path.exists() for path in paths),
             lambda: ''.join(agent.describe() for agent in cluster.agents), 60)
    return [path.read_text() for path in paths]


def end(cluster, code=0):  # noqa: F811
    (cluster.folder / 'end').touch()
    for agent in cluster.agents:
        agent.ends(code, 60)


def start(cluster, url, nodes=(0, 1), nnodes=2, restarts=0, **env):  # noqa: F811
    job = Job(cluster, nnodes, restarts=restarts)
    env = {'OTEL_EXPORTER_OTLP_ENDPOINT': url, **env}
    for node in nodes:
        job.agent(node, program=PROGRAM, **{k: v for k, v in env.items() if v is not None})
    return job


def test_job_rounds_and_recovery_are_spans(cluster, collector):  # noqa: F811
    job = start(cluster, collector.url + '/', restarts=1, OTEL_SERVICE_NAME='train',
                OTEL_RESOURCE_ATTRIBUTES='team=a%20b,service.name=other',
                OTEL_EXPORTER_OTLP_HEADERS='x-api-key=s3%20cret, other=1')
    first = received_parents(cluster, 1, (0, 1))
    (cluster.folder / 'fail.1.0').touch()
    second = received_parents(cluster, 2, (0, 1))
    end(cluster)
    spans = spans_of(collector)
    whole, = named(spans, 'job ')
    rounds, (began,), (recovery,) = (named(spans, n) for n in ('round ', 'start', 'recovery'))
    assert whole['name'] == f'job {job.run_id}' and 'parentSpanId' not in whole
    assert [s['name'] for s in rounds] == ['round 1', 'round 2']
    assert [s['status']['code'] for s in (whole, *rounds)] == [1, 2, 1]
    assert {s['parentSpanId'] for s in (*rounds, began, recovery)} == {whole['spanId']}
    assert attributes(rounds[0])['cpprun.cause'] == 'failure'
    assert attributes(rounds[1])['cpprun.restart_count'] == '1'
    assert attributes(recovery)['cpprun.cause'] == 'failure'
    phases = {s['name'] for s in spans.values() if s.get('parentSpanId') == recovery['spanId']}
    assert {'detect', 'stop', 'form', 'spawn_last'} <= phases
    phases = {s['name'] for s in spans.values() if s.get('parentSpanId') == began['spanId']}
    assert {'join', 'world', 'spawn_last'} <= phases
    for received, span in ((first, rounds[0]), (second, rounds[1])):
        assert set(received) == {f'00-{span["traceId"]}-{span["spanId"]}-01'}, 'on both nodes'
    for path, headers, _ in collector.requests:
        assert path == '/v1/traces' and headers['Content-Type'] == 'application/json'
        assert headers['x-api-key'] == 's3 cret' and headers['other'] == '1'
    resource = collector.bodies[0]['resourceSpans'][0]['resource']['attributes']
    assert attributes({'attributes': resource}) == {'service.name': 'train', 'team': 'a b'}
    assert all('s3 cret' not in agent.err() for agent in cluster.agents)


def test_an_incoming_traceparent_is_the_parent_of_the_job(cluster, collector):  # noqa: F811
    start(cluster, 'http://127.0.0.1:9/', nodes=(0,), nnodes=1, TRACEPARENT=PARENT,
          OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector.url + '/own/path')
    received, = received_parents(cluster, 1, (0,))
    end(cluster)
    trace, parent = PARENT.split('-')[1:3]
    spans = spans_of(collector, parent)
    whole, = named(spans, 'job ')
    assert whole['parentSpanId'] == parent
    assert {s['traceId'] for s in spans.values()} == {trace} == {received.split('-')[1]}
    assert {path for path, _, _ in collector.requests} == {'/own/path'}


@pytest.mark.parametrize('env', [
    {'OTEL_EXPORTER_OTLP_ENDPOINT': None}, {'OTEL_EXPORTER_OTLP_ENDPOINT': ''},
    {'OTEL_SDK_DISABLED': 'TRUE'}, {'OTEL_TRACES_EXPORTER': 'none'},
    {'TRACEPARENT': PARENT[:-1] + '0'}])
def test_nothing_is_sent_unless_it_is_wanted(cluster, collector, env):  # noqa: F811
    start(cluster, collector.url, nodes=(0,), nnodes=1, **env)
    assert received_parents(cluster, 1, (0,)) == [env.get('TRACEPARENT', '')]
    end(cluster)
    assert collector.requests == []


def test_the_standby_sends_what_ends_after_the_take_over(cluster, collector):  # noqa: F811
    job = start(cluster, collector.url, nodes=(0, 1, 2), nnodes='2:3', restarts=1)
    received_parents(cluster, 1, range(3))
    wait_for(lambda: any(n.get('is_standby') for n in job.status().get('nodes', [])), job.status)
    host = job.host_of(cluster.agents)
    host.popen.kill()
    host.popen.wait()
    cluster.agents.remove(host)
    received_parents(cluster, 2, range(2))
    end(cluster)
    spans = spans_of(collector)
    assert [s['name'] for s in named(spans, 'round ')] == ['round 1', 'round 2']
    assert len(named(spans, 'job ')) == 1 and len(named(spans, 'recovery')) == 1
    assert attributes(named(spans, 'recovery')[0])['cpprun.cause'] == 'node_lost'


def test_a_busy_collector_gets_them_again(cluster, collector):  # noqa: F811
    collector.answers = [503, 429]
    start(cluster, collector.url, nodes=(0,), nnodes=1)
    received_parents(cluster, 1, (0,))
    end(cluster)
    assert len(named(spans_of(collector), 'job ')) == 1
    assert 'traces' not in cluster.agents[0].err()


def test_a_collector_that_refuses_costs_one_warning(cluster, collector):  # noqa: F811
    collector.answer = 503
    start(cluster, collector.url, nodes=(0,), nnodes=1)
    received_parents(cluster, 1, (0,))
    end(cluster)
    assert cluster.agents[0].err().count('traces: ') == 1
    assert re.search(r'traces: (\d+) of \1 spans were not sent', cluster.agents[0].err())


def test_a_collector_that_never_answers_delays_the_end_by_a_limit(cluster):  # noqa: F811
    """The delay is compared with the same job without a collector."""
    with socket.socket() as silent:
        silent.bind(('127.0.0.1', 0))
        silent.listen(8)
        url = f'http://127.0.0.1:{silent.getsockname()[1]}'
        took = {}
        for wanted in (None, url):
            start(cluster, wanted, nodes=(0,), nnodes=1)
            received_parents(cluster, 1, (0,))
            began = time.monotonic()
            end(cluster)
            took[wanted] = time.monotonic() - began
            for name in ('end', 'parent.1.0'):
                (cluster.folder / name).unlink()
        assert took[url] < 10 * took[None] + 3 * END_WAIT
        err = cluster.agents[-1].err()
        assert err.count('traces: ') == 1 and 'no answer in time' in err


def test_what_cannot_be_sent_is_reported_at_the_start(cluster):  # noqa: F811
    for number, (env, expected) in enumerate([
            ({'OTEL_EXPORTER_OTLP_PROTOCOL': 'grpc'}, 'http/json'),
            ({'OTEL_EXPORTER_OTLP_ENDPOINT': 'ftp://s3cret@x'}, 'OTEL_EXPORTER_OTLP_ENDPOINT: '),
            ({'OTEL_EXPORTER_OTLP_HEADERS': 'a=s3cret%0d%0ab'}, 'is no header')]):
        start(cluster, f'http://127.0.0.1:{free_port()}', nodes=(0,), nnodes=1, **env)
        received_parents(cluster, 1, (0,))
        end(cluster)
        err = cluster.agents[number].err()
        assert 'no traces are sent: OTEL_EXPORTER' in err and expected in err
        assert 's3cret' not in err
        for name in ('end', 'parent.1.0'):
            (cluster.folder / name).unlink()
