"""The connection to the agent: a socket, and a shared memory page that the agent sends over it.

Messages: rendezvous/protocol/worker/worker_channel.hpp. Page: worker_page.hpp in that folder.
"""

import array
import contextlib
import faulthandler
import fcntl
import mmap
import os
import select
import socket
import struct
import sys
import threading
import time
import types

MAGIC = b'CPRW'
VERSION = 5
# Types of messages.
HELLO, PAGE, READY, REPORT, ARENA_REQUEST, PEER_ARENA_REQUEST, ARENA = range(7)
COMMIT_REQUEST, PERMISSION, SNAPSHOT, RESUMED = range(7, 11)
FAULT_PERMIT_REQUEST, BEGAN, FIRST_STEP = range(11, 14)
ELASTIC, REGROUP, RELEASED, NEW_ROUND = range(14, 18)
CHECKSUM_REQUEST, CHECKSUMS = range(18, 20)

MESSAGE_BYTES = 20 + 4096
PAGE_BYTES = 4096
PAGE_MAGIC = 0x50525043
STEPS_OF_MEAN = 8  # steps over which the step time is averaged
CONNECT_TAKES = 2  # seconds
ANSWER_TAKES = 10
# Of one request for checksums: the agent answers within a second.
CHECKSUM_RANGES = 256
CHECKSUM_BYTES = 256 << 20

# Fields of the page: index of 8-byte words for 64-bit fields, of 4-byte words for the others.
STEP, COLLECTIVES, HEARTBEAT_NS, STEP_NS, SNAPSHOT_WRITTEN, SNAPSHOT_NEWEST = 8, 9, 10, 13, 24, 32
SECTION, TRACE_REQUEST, SECTION_SINCE_NS, TRACE_FILE = 96, 97, 49, 100
# The table of sections: where it begins, the size of an entry and of its name, and their number.
SECTIONS_BEGIN, SECTION_BYTES, SECTION_NAME_BYTES, SECTIONS_MAX = 448, 64, 40, 16
SECTION_LONGEST, SECTION_LIMIT, SECTION_ENDED = 5, 6, 7  # words of a section's entry
SAVED_NS, COMPUTE_NS, COMPUTE_STEPS = 40, 41, 42
PHASE, IS_READY, CAN_SAVE, STACK_FILE, PROGRESS_ONLY, WANTS_STOP = 22, 23, 24, 25, 28, 32
READY_PHASE, TRAINING_PHASE, SAVING_PHASE = 1, 2, 4

# On this signal faulthandler writes the stacks of all threads to a file that the agent reads.
STACK_SIGNAL = 50

GET_SEALS, SEAL_SHRINK = 1034, 2  # constants of fcntl, which Python has from 3.9 on


def connect(name):
    """Connects to the agent with this socket name; None if no agent answers."""
    connected = _connect(name)
    if connected is None:
        return None
    sock, page = connected
    sock.settimeout(ANSWER_TAKES)
    return Agent(sock, page)


def connect_elastic(name):
    """A connection over which the agent asks this worker to regroup; None if it cannot."""
    connected = _connect(name)
    if connected is None:
        return None
    sock, page = connected
    version = struct.unpack_from('=I', page, 4)[0]
    page.close()
    try:
        if version >= 5:
            sock.settimeout(None)
            sock.send(message(ELASTIC))
            return sock
    except OSError:
        pass
    sock.close()
    return None


def _connect(name):
    if not name:
        return None
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        sock.settimeout(CONNECT_TAKES)
        sock.connect('\0' + name)
        if not _is_trusted(sock):
            raise OSError('the socket is of another user')
        sock.send(message(HELLO, struct.pack('=I', VERSION)))
        return sock, _receive_page(sock)
    except (OSError, ValueError, struct.error):
        sock.close()
        return None


def message(kind, body=b''):
    return MAGIC + struct.pack('=I', kind) + body


def _progress(epoch, step):
    return struct.pack('=qq', -1 if step is None else step, -1 if epoch is None else epoch)


def _is_trusted(sock):
    """Accepts memory only from our own user or root."""
    peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize('3i'))
    return struct.unpack('3i', peer)[1] in (os.geteuid(), 0)


def receive(sock):
    """A datagram and the descriptors beside it. The caller closes these."""
    descriptors = array.array('i')
    room = socket.CMSG_SPACE(4 * descriptors.itemsize)
    answer, beside, _, _ = sock.recvmsg(MESSAGE_BYTES + 1, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in beside:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            whole = len(data) - len(data) % descriptors.itemsize
            descriptors.frombytes(data[:whole])
    return answer, descriptors


def _close_all(descriptors):
    for descriptor in descriptors:
        os.close(descriptor)


def _dump_traces(requests, file):
    """Appends a dump to the file for each byte of the pipe: the sizes of a text and of a pickle,
    and both."""
    while os.read(requests, 1):
        try:
            text, pickled = _flight_traces()
        except Exception:  # of a torch whose functions differ; an error here must not end training
            text, pickled = b'', b''
        os.write(file, struct.pack('=QQ', len(text), len(pickled)) + text + pickled)


def _flight_traces():
    """torch's flight recorder as lines for the agent, and as torch dumps it: Gloo's or NCCL's."""
    import pickle

    c10d = sys.modules['torch']._C._distributed_c10d
    with _inductor_not_imported():
        pickled = c10d._dump_fr_trace(includeCollectives=True)
    entries = pickle.loads(pickled).get('entries', ())
    if not entries and hasattr(c10d, '_dump_nccl_trace'):
        with _inductor_not_imported():
            pickled = c10d._dump_nccl_trace()
        entries = pickle.loads(pickled).get('entries', ())
    lines = [_trace_line(entry) for entry in entries if not entry.get('is_p2p')]
    return '\n'.join(lines).encode(errors='replace'), pickled


@contextlib.contextmanager
def _inductor_not_imported():
    """For the frames of a dump, torch's C++ code evaluates torch._inductor.codecache if that is
    there. The first access to torch._inductor imports it, which takes seconds of CPU time, more
    than the agent waits for a dump. An empty module in its place has no codecache."""
    names = vars(sys.modules['torch'])
    empty = types.ModuleType('torch._inductor')
    if names.setdefault('_inductor', empty) is not empty:
        yield  # the program has imported it
        return
    try:
        yield
    finally:
        if names.get('_inductor') is empty:
            del names['_inductor']


def _word_of(place):
    """Of a section's entry in the page."""
    return (SECTIONS_BEGIN + place * SECTION_BYTES) // 8


def _trace_line(entry):
    """Gloo retires a collective that is over, NCCL has a state for it."""
    group = ' '.join(map(str, entry['process_group']))
    is_over = entry.get('retired') or entry.get('state') == 'completed'
    fields = (group, entry['collective_seq_id'], entry['profiling_name'], entry['input_sizes'])
    words = [' '.join(str(field).split()) for field in fields]
    return '\t'.join((*words, 'over' if is_over else 'open'))


def _receive_page(sock):
    answer, descriptors = receive(sock)
    try:
        if answer[:8] != message(PAGE) or not descriptors:
            raise ValueError('no page')
        # If the agent could shrink the page, our next access could end in SIGBUS.
        if not fcntl.fcntl(descriptors[0], GET_SEALS) & SEAL_SHRINK:
            raise ValueError('the page can shrink')
        page = mmap.mmap(descriptors[0], PAGE_BYTES)
    finally:
        _close_all(descriptors)
    if struct.unpack_from('=I', page)[0] != PAGE_MAGIC:
        raise ValueError('no page of ours')
    return page


class Agent:
    """A connection. Each access to a field of the page is atomic."""

    def __init__(self, sock, page):
        self._sock = sock
        self._int64s = memoryview(page).cast('q')
        self._uint32s = memoryview(page).cast('I')
        self._version = self._uint32s[1]
        self._request_lock = threading.Lock()
        self._last_request_id = 0
        self._has_stepped = False
        self._bytes = memoryview(page)
        self._sections = []  # names, in the order of the table
        self._open_sections = []  # (place, begin) of those that its threads are in, as entered
        self._count_lock = threading.Lock()
        self._offers_traces = False
        if self._version >= 3:
            self._offer_stack()
        self._offer_traces()

    def _offer_stack(self):
        """Lets the agent collect the stacks of a hanging worker. Free until the signal arrives."""
        try:
            file = os.memfd_create('cpprun-stack')
            faulthandler.register(STACK_SIGNAL, file=file, all_threads=True)
        except (OSError, ValueError, RuntimeError, AttributeError):
            return
        self._uint32s[STACK_FILE] = file + 1

    def _offer_traces(self):
        """Lets the agent collect dumps of torch's flight recorder, by a thread that sleeps until
        then. Only with torch, and once."""
        if self._version < 6 or self._offers_traces or 'torch' not in sys.modules:
            return
        self._offers_traces = True
        try:
            file = os.memfd_create('cpprun-trace')
            requests, writer = os.pipe()
            arguments = (requests, file)
            threading.Thread(target=_dump_traces, args=arguments, daemon=True).start()
        except (OSError, RuntimeError, AttributeError):
            return
        self._uint32s[TRACE_FILE] = file + 1
        self._uint32s[TRACE_REQUEST] = writer + 1

    def count(self):
        with self._count_lock:
            self._int64s[COLLECTIVES] += 1

    def beat(self, step, phase, progress_only=False):
        now, words = time.monotonic_ns(), self._int64s
        steps, mean = step - words[STEP], words[STEP_NS]
        was_training = self._uint32s[PHASE] > READY_PHASE
        if self._uint32s[PHASE] == SAVING_PHASE:
            self.add_saved(now - words[HEARTBEAT_NS])
        if steps > 0 and words[HEARTBEAT_NS] and was_training:
            takes = (now - words[HEARTBEAT_NS]) // steps
            words[STEP_NS] = mean + (takes - mean) // STEPS_OF_MEAN if mean else takes
        words[STEP] = step
        self._uint32s[PHASE] = phase
        self._uint32s[PROGRESS_ONLY] = int(progress_only)
        words[HEARTBEAT_NS] = now

    def report_progress(self, step):
        """The heartbeat of a program that sends none itself: without effect if it does. Programs
        may call what sends it rarely, so a long time without one shows no hang."""
        has_heartbeat = self._int64s[HEARTBEAT_NS] and not self._uint32s[PROGRESS_ONLY]
        if self._version >= 8 and not has_heartbeat:
            self.beat(step, TRAINING_PHASE, progress_only=True)
            self.send_first_step(step)

    def add_saved(self, nanoseconds):
        """Training has waited so long for a save."""
        if self._version >= 5:
            self._int64s[SAVED_NS] += nanoseconds

    def add_compute(self, nanoseconds):
        """A step of which this rank has computed so long, and has waited for others the rest."""
        if self._version >= 6:
            self._int64s[COMPUTE_NS] += nanoseconds
            self._int64s[COMPUTE_STEPS] += 1

    def enter_section(self, name, limit_ns):
        """Returns what leave_section() takes."""
        if self._version < 6:
            return None
        begin = time.monotonic_ns()
        with self._count_lock:
            place = self._place_of_section(name)
            if place is not None:
                self._int64s[_word_of(place) + SECTION_LIMIT] = limit_ns
            entered = (place, begin)
            self._open_sections.append(entered)
            self._show_section()
        return entered

    def leave_section(self, entered):
        if self._version < 6:
            return
        place, begin = entered
        with self._count_lock:
            self._open_sections.remove(entered)  # not the last one: threads have sections too
            if place is not None:
                word = _word_of(place)
                took = time.monotonic_ns() - begin
                self._int64s[word + SECTION_LONGEST] = max(
                    self._int64s[word + SECTION_LONGEST], took
                )
                self._int64s[word + SECTION_ENDED] += 1
            self._show_section()

    def _show_section(self):
        place, begin = self._open_sections[-1] if self._open_sections else (None, 0)
        self._uint32s[SECTION] = 0
        self._int64s[SECTION_SINCE_NS] = begin
        self._uint32s[SECTION] = 0 if place is None else place + 1

    def _place_of_section(self, name):
        """Where the table has this name; None if the table is full."""
        if name in self._sections:
            return self._sections.index(name)
        place = len(self._sections)
        if place == SECTIONS_MAX:
            return None
        begin = SECTIONS_BEGIN + place * SECTION_BYTES
        text = name.encode()[:SECTION_NAME_BYTES]
        self._bytes[begin : begin + len(text)] = text
        self._sections.append(name)
        return place

    def send_first_step(self, step):
        """Sends the first call only: it ends the recovery time."""
        if not self._has_stepped:
            self._has_stepped = True
            self._offer_traces()
            if self._version >= 4:
                self._send(message(FIRST_STEP, struct.pack('=q', step)))

    def begin_round(self):
        """This worker survived its round, and the agent has emptied the page for the next one."""
        self._has_stepped = False
        if self._version >= 6:
            with self._count_lock:
                self._show_section()  # the program is still in its sections

    def send_ready(self):
        if not self._uint32s[IS_READY]:
            self._uint32s[IS_READY] = 1
            self._send(message(READY))

    def wants_stop(self):
        return self._uint32s[WANTS_STOP] != 0

    def set_can_save(self, can_save):
        self._uint32s[CAN_SAVE] = int(can_save)

    def newest_snapshot(self):
        return self._int64s[SNAPSHOT_NEWEST] or None

    def send_snapshot(self, step, path):
        self._int64s[SNAPSHOT_WRITTEN] = step
        if self._version >= 2:
            self._send(message(SNAPSHOT, struct.pack('=q', step) + os.fsencode(path)))

    def send_resumed(self, step, path, fell_back):
        if self._version >= 3:
            self._send(message(RESUMED, struct.pack('=Iq', fell_back, step) + os.fsencode(path)))

    def request_commit_permission(self, step):
        """(True, ''), or False and the reason."""
        if self._version < 2:
            return True, ''
        return self._request_permission(COMMIT_REQUEST, struct.pack('=q', step))

    def request_fault_permit(self, fault, epoch, step):
        """True if the agent permits to inject this fault of the plan here."""
        body = struct.pack('=I', fault) + _progress(epoch, step)
        is_given, _ = self._request_permission(FAULT_PERMIT_REQUEST, body)
        return is_given

    def request_arena(self, size):
        """Maps this local rank's arena, of at least `size` bytes; 0: as large as it is. Returns the
        mmap, or None if the rank has no arena so far. OSError: why the agent refuses."""
        return self._map(ARENA_REQUEST, struct.pack('=Q', size), mmap.ACCESS_DEFAULT)

    def request_peer_arena(self, local_rank):
        """The same of another worker of this node, which may write meanwhile. What is written here
        stays here."""
        return self._map(PEER_ARENA_REQUEST, struct.pack('=I', local_rank), mmap.ACCESS_COPY)

    def request_checksums(self, ranges):
        """The crc32 of each range (offset, bytes) of this rank's arena; None: the agent computes
        none now. At most CHECKSUM_RANGES, of CHECKSUM_BYTES in all."""
        if self._version < 7:
            return None
        body = b''.join(struct.pack('=QQ', *each) for each in ranges)
        answer, descriptors, why = self._request(CHECKSUM_REQUEST, body, CHECKSUMS)
        _close_all(descriptors)
        if why or len(answer) != 4 + 4 * len(ranges) or answer[:4] != struct.pack('=I', 1):
            return None
        return struct.unpack(f'={len(ranges)}I', answer[4:])

    def _map(self, kind, body, access):
        if self._version < 2:
            raise OSError('the agent keeps no memory for snapshots')
        answer, descriptors, why = self._request(kind, body, ARENA)
        try:
            if why:
                raise OSError(why)
            (size,) = struct.unpack_from('=Q', answer)
            if len(answer) > 8:
                raise OSError(answer[8:].decode(errors='replace'))
            if not size:
                return None
            if not descriptors or not fcntl.fcntl(descriptors[0], GET_SEALS) & SEAL_SHRINK:
                raise OSError("the agent's memory is smaller than it states")
            return mmap.mmap(descriptors[0], size, access=access)
        except (ValueError, OverflowError, struct.error) as error:
            raise OSError(f"the agent's memory can't be used: {error}") from None
        finally:
            _close_all(descriptors)

    def send_began(self, epoch, step):
        self._send(message(BEGAN, _progress(epoch, step)))

    def _request_permission(self, kind, body):
        """(True, ''), or False and the reason."""
        answer, descriptors, why = self._request(kind, body, PERMISSION)
        _close_all(descriptors)
        if why:
            return False, why
        return answer[:4] == struct.pack('=I', 1), answer[4:].decode(errors='replace')

    def _request(self, kind, body, reply):
        """The body of the reply behind the request's id, its descriptors, and '' or why there is no
        reply."""
        with self._request_lock:
            self._last_request_id += 1
            request_id = struct.pack('=I', self._last_request_id)
            if not self._send(message(kind, request_id + body)):
                return b'', (), 'the agent has gone'
            return self._await(message(reply, request_id), time.monotonic() + ANSWER_TAKES)

    def _await(self, start, until):
        """Skips late answers to earlier requests."""
        waiting = select.poll()
        waiting.register(self._sock, select.POLLIN)
        while waiting.poll(max(0, until - time.monotonic()) * 1000):
            try:
                answer, descriptors = receive(self._sock)
            except OSError:
                answer, descriptors = b'', ()
            if not answer:
                return b'', (), 'the agent has gone'
            if answer.startswith(start) and len(answer) >= 16:
                return answer[12:], descriptors, ''
            _close_all(descriptors)
        return b'', (), 'the agent does not answer'

    def _send(self, message):
        try:
            self._sock.send(message)
            return True
        except OSError:
            return False
