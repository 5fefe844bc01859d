"""Reads /events as a browser does."""

import json
import socket
import time


class Events:
    """One reader. Every wait has a deadline."""

    def __init__(self, port, path='/events'):
        self.sock = socket.create_connection(('127.0.0.1', port), timeout=10)
        self.sock.sendall(f'GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n'.encode())
        self.lines = self.sock.makefile('rb')
        self.status = int(self.lines.readline().split()[1])
        self.headers = {}
        while (line := self.lines.readline().strip()):
            name, _, value = line.decode().partition(': ')
            self.headers[name.lower()] = value

    def next(self, name, holds=lambda data: True, seconds=30):
        """The next event of this name whose data holds."""
        until = time.monotonic() + seconds
        seen = None
        fields = {}
        while time.monotonic() < until:
            self.sock.settimeout(max(0.1, until - time.monotonic()))
            line = self.lines.readline()
            assert line, f'the stream ended; last seen: {seen}'
            if line.strip():
                key, _, value = line.decode().rstrip('\n').partition(': ')
                fields[key] = value
                continue
            if fields.get('event') == name:
                assert int(fields['id']) > 0
                seen = json.loads(fields['data'])
                if holds(seen):
                    return seen
            fields = {}
        raise AssertionError(f'no such {name} within {seconds} s; last seen: {seen}')

    def close(self):
        self.lines.close()
        self.sock.close()
