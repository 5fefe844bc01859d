"""A simulated coordinator: the dashboard's own page with events from the test."""

import http.server
import json
import queue
import threading
import time

T0 = 5_000_000  # its clock at the first event, in ms


def node(number, state='running', nproc=8, part=True, name=None):
    place = [number, number * nproc] if part else [None, None]
    return [name or f'node{number:04d}', state, nproc, 'default',
            f'10.0.{number // 256}.{number % 256}', *place]


def finished(number, begun, started, ran, stopping, why, nodes, workers):
    """A finished round; `why`: cause, class or None, text."""
    cause, kind, text = why
    made = {'round': number, 'nodes': nodes, 'workers': workers, 'formed_ms': begun,
            'started_ms': begun + started, 'stopped_ms': begun + started + ran,
            'over_ms': begun + started + ran + stopping, 'cause': cause, 'why': text}
    if kind:
        made.update({'class': kind, 'root_cause': text, 'last_lines': []})
    return made


def running(number, begun, started, nodes, workers):
    return {'round': number, 'nodes': nodes, 'workers': workers, 'formed_ms': begun,
            'started_ms': begun + started, 'stopped_ms': None, 'over_ms': None}


def job(nodes, rounds, **more):
    made = {'phase': 'running', 'state': 'running', 'outcome': None, 'failure_summary': '',
            'round': rounds[-1]['round'],
            'min_nodes': 2, 'max_nodes': 2, 'world_size': rounds[-1]['workers'],
            'restarts': [0, 3], 'hang_restarts': [0, 3], 'why_no_round': '', 'snapshot_step': None,
            'resumed_from': None, 'node_count': len(nodes), 'nodes': nodes, 'rounds': rounds}
    return {**made, **more}


class Feed:
    """Serves `page` at / and the events passed to send() at /events."""

    def __init__(self, page):
        self.page, self.newest, self.readers = page, {}, []
        self.steps = {'jobs': {}}  # what it remembers
        self.lock = threading.Lock()
        feed = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def log_message(self, *_):
                pass

            def do_GET(self):
                feed.answer(self)

        self.server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        self.server.daemon_threads = True
        self.url = f'http://127.0.0.1:{self.server.server_port}/'
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def answer(self, handler):
        if handler.path != '/events':
            pages = {'/': self.page, '/steps': json.dumps(self.steps).encode()}
            handler.send_response(200 if handler.path in pages else 404)
            handler.send_header('Content-Type', 'text/html; charset=utf-8')
            handler.end_headers()
            return handler.wfile.write(pages.get(handler.path, b''))
        handler.send_response(200)
        handler.send_header('Content-Type', 'text/event-stream')
        handler.end_headers()
        mine = queue.Queue()
        with self.lock:
            for event in self.newest.values():
                mine.put(event)
            self.readers.append(mine)
        while (event := mine.get()) is not None:
            handler.wfile.write(event)
            handler.wfile.flush()
        return None

    def send(self, name, data, now_ms):
        text = f'event: {name}\nid: {now_ms}\ndata: {json.dumps(data)}\n\n'.encode()
        with self.lock:
            self.newest[name] = text
            for reader in self.readers:
                reader.put(text)

    def state(self, now_ms, **jobs):
        self.send('state', {'version': '0.1.0', 'host': 'node0000', 'jobs': jobs}, now_ms)

    def progress(self, now_ms, **jobs):
        self.send('progress', {'jobs': jobs}, now_ms)

    def workers(self, now_ms, **jobs):
        self.send('workers', {'jobs': jobs}, now_ms)

    def close(self):
        with self.lock:
            for reader in self.readers:
                reader.put(None)
        self.server.shutdown()
        self.thread.join(20)
        self.server.server_close()


def wait_until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)
