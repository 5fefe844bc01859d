"""Streams of a device that are threads, in the place of torch.cuda's (device_copy.CudaStreams).

Each stream runs what is queued in order. hold() stops a stream until release().
"""

import queue
import threading

WAITS_S = 60


class Event:
    def __init__(self):
        self._happened = threading.Event()

    def happen(self):
        self._happened.set()

    def query(self):
        return self._happened.is_set()

    def synchronize(self):
        assert self._happened.wait(WAITS_S)

    def wait(self, stream):
        stream.put(self.synchronize)


class Stream:
    def __init__(self):
        self._calls = queue.SimpleQueue()
        self._held = None
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        while True:
            self._calls.get()()

    def put(self, call):
        self._calls.put(call)

    def hold(self):
        self._held = Event()
        self._held.wait(self)

    def release(self):
        self._held.happen()

    def drain(self):
        """Waits until all that was queued has run."""
        event = ThreadStreams.record(self)
        event.synchronize()


class ThreadStreams:
    def __init__(self):
        self._training, self._side = Stream(), Stream()
        self.capturing = False

    def training(self, device=None):
        return self._training

    def side(self, device=None):
        return self._side

    @staticmethod
    def copy(stream, pairs):
        for into, source in pairs:
            stream.put(lambda into=into, source=source: into.copy_(source))

    @staticmethod
    def record(stream):
        event = Event()
        stream.put(event.happen)
        return event

    def is_capturing(self):
        return self.capturing
