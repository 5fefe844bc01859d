"""The control protocol by hand: a minimal MessagePack codec, and an agent made of a socket."""

import hashlib
import hmac
import socket
import struct

MAGIC = b'CPRN'
PROTOCOL = 6


def pack(value):
    if value is None:
        return b'\xc0'
    if isinstance(value, bool):
        return b'\xc3' if value else b'\xc2'
    if isinstance(value, int):
        if 0 <= value < 128:
            return bytes([value])
        return struct.pack('>BQ', 0xcf, value) if value >= 0 else struct.pack('>Bq', 0xd3, value)
    if isinstance(value, str):
        raw = value.encode()
        return struct.pack('>BI', 0xdb, len(raw)) + raw
    if isinstance(value, dict):
        items = b''.join(pack(k) + pack(v) for k, v in value.items())
        return struct.pack('>BI', 0xdf, len(value)) + items
    return struct.pack('>BI', 0xdd, len(value)) + b''.join(pack(v) for v in value)


def _take(data, at, size):
    return data[at:at + size], at + size


def unpack(data, at=0):
    """The value and its end."""
    code, at = data[at], at + 1
    if code < 0x80:
        return code, at
    if code >= 0xe0:
        return code - 256, at
    if code in (0xc0, 0xc2, 0xc3):
        return {0xc0: None, 0xc2: False, 0xc3: True}[code], at
    numbers = {0xcc: 'B', 0xcd: 'H', 0xce: 'I', 0xcf: 'Q', 0xd0: 'b', 0xd1: 'h', 0xd2: 'i',
               0xd3: 'q', 0xca: 'f', 0xcb: 'd'}
    if code in numbers:
        raw, at = _take(data, at, struct.calcsize(numbers[code]))
        return struct.unpack('>' + numbers[code], raw)[0], at
    sizes = {0xd9: 'B', 0xda: 'H', 0xdb: 'I', 0xdc: 'H', 0xdd: 'I', 0xde: 'H', 0xdf: 'I'}
    if code in sizes:
        raw, at = _take(data, at, struct.calcsize(sizes[code]))
        size = struct.unpack('>' + sizes[code], raw)[0]
        kind = 'str' if code < 0xdc else 'array' if code < 0xde else 'map'
    else:
        kind = 'map' if code < 0x90 else 'array' if code < 0xa0 else 'str'
        size = code & (0x1f if kind == 'str' else 0x0f)
    if kind == 'str':
        raw, at = _take(data, at, size)
        return raw.decode(), at
    values = []
    for _ in range(size * (2 if kind == 'map' else 1)):
        value, at = unpack(data, at)
        values.append(value)
    return (dict(zip(values[::2], values[1::2])) if kind == 'map' else values), at


class Line:
    """One end of a control connection."""

    def __init__(self, sock):
        self.sock, self.data = sock, b''
        sock.settimeout(100)

    def send(self, name, **fields):
        body = pack([name, fields])
        self.sock.sendall(struct.pack('<I', len(body)) + body)

    def _read(self, size):
        while len(self.data) < size:
            more = self.sock.recv(65536)
            if not more:
                raise EOFError
            self.data += more
        got, self.data = self.data[:size], self.data[size:]
        return got

    def receive(self):
        """The next message: name, fields."""
        size = struct.unpack('<I', self._read(4))[0]
        name, fields = unpack(self._read(size))[0]
        return name, fields

    def receives(self, wanted):
        """Reads until a message of this name."""
        while True:
            name, fields = self.receive()
            if name == wanted:
                return fields

    def is_closed(self):
        try:
            while True:
                self.receive()
        except (EOFError, ConnectionError):
            return True


def hmac_of(secret, text):
    return hmac.new(secret.encode(), text.encode(), hashlib.sha256).hexdigest()


def node_id_of(key):
    """The public id that belongs to a node's key."""
    return int(hmac_of(key, 'cpprun-node-1')[:16], 16)


def mac_of(token, nonce, run_id, command):
    fields = (nonce, run_id, command.get('node', ''), command.get('reason', ''))
    texts = ''.join(f'{len(text)}:{text}\n' for text in fields)
    kind, nodes = command['kind'], command.get('nodes', 0)
    numbers = f'{kind} {nodes} {int(command.get("is_resumable", False))}\n'
    return hmac_of(token, 'cpprun-admin-1\n' + texts + numbers)


class FakeAgent(Line):
    def __init__(self, port, run_id, key='key of a fake', **hello):
        super().__init__(socket.create_connection(('127.0.0.1', port), 10))
        self.sock.sendall(MAGIC)
        fields = {'protocol': PROTOCOL, 'version': '0.0', 'run_id': run_id, 'connection': 1,
                  'token': key, 'node': {'name': 'fake', 'incarnation': node_id_of(key)}}
        self.send('hello', **{**fields, **hello})

    def register(self, nodes=(2, 2), **more):
        terms = {'min_nodes': nodes[0], 'max_nodes': nodes[1], 'max_restarts': 0,
                 'has_fixed_ranks': False, 'is_agent_store': False,
                 'is_store_on_main_port': False, 'master_addr': '', 'master_port': 0,
                 'last_call_ns': -1, 'scale_up_interval_ns': 30 * 10**9,
                 'heartbeat_ns': 10**9, 'node_lease_ns': 5 * 10**9, **more.pop('job_spec', {})}
        fields = {'job_spec': terms, 'addresses': ['127.0.0.1'], 'local_addr': '', 'nproc': 1,
                  'role': 'default', 'node_rank': None, 'reserved_port': 9, 'reported_phase': 0,
                  'round': 0, 'term': 0}
        self.send('register', **{**fields, **more})
        return self
