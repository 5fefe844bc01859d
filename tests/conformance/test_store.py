"""torch's own TCPStore clients against `cpprunctl serve`, and the bytes of older torch versions.

CPPRUN_BIN names the folder of cpprunctl (default build/check/bin). Needs torch; skipped without.
"""

import datetime
import os
import pathlib
import signal
import socket
import struct
import subprocess
import threading

import pytest

dist = pytest.importorskip("torch.distributed")

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("CPPRUN_BIN", ROOT / "build/check/bin"))
SHORT = datetime.timedelta(milliseconds=200)


class Serving:
    """A `cpprunctl serve` on a free port."""

    def __init__(self, *options):
        command = [BIN / "cpprunctl", "serve", "--listen", "127.0.0.1:0", *options]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert line.startswith("cpprun: serving on 127.0.0.1:"), line
        self.port = int(line.rsplit(":", 1)[1])

    def client(self, seconds=20):
        return dist.TCPStore("127.0.0.1", self.port, is_master=False, wait_for_workers=False,
                             timeout=datetime.timedelta(seconds=seconds))

    def socket(self):
        s = socket.create_connection(("127.0.0.1", self.port), 10)
        s.settimeout(10)
        return s

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(10)


@pytest.fixture(scope="module")
def serving():
    s = Serving()
    yield s
    assert s.process.poll() is None, "the server died"
    assert s.stop() == 0


def in_threads(count, body):
    errors = []

    def run(i):
        try:
            body(i)
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    [t.start() for t in threads]
    [t.join(60) for t in threads]
    assert not errors, errors


def test_sixty_four_concurrent_clients(serving):
    total = 64

    def body(i):
        s = serving.client()
        s.set(f"many/{i}", str(i))
        for _ in range(20):
            s.add("many/sum", 1)
        assert s.get(f"many/{(i + 1) % total}") == str((i + 1) % total).encode()
        if s.add("many/arrived", 1) == total:
            s.set("many/open", "")
        s.wait(["many/open"], datetime.timedelta(seconds=30))
    in_threads(total, body)
    assert serving.client().get("many/sum") == str(20 * total).encode()


@pytest.mark.parametrize("megabytes", [8, 9, 64])
def test_values_above_torchs_own_limit(serving, megabytes):
    body = os.urandom(1 << 20) * megabytes + b"end"
    s = serving.client()
    s.set("big", body)
    assert s.get("big") == body
    s.append("big", "tail")
    assert s.get("big") == body + b"tail"
    s.delete_key("big")


def test_value_limit_is_an_option():
    serving = Serving("--store-value-limit-mb", "1")
    try:
        s = serving.client(2)
        s.set("fits", b"x" * (1 << 20))
        assert len(s.get("fits")) == 1 << 20
        with pytest.raises(dist.DistError):
            s.set("too-big", b"x" * ((1 << 20) + 1))
            s.get("too-big")
        assert serving.client().check(["fits"])
    finally:
        assert serving.stop() == 0


@pytest.mark.skipif(not hasattr(dist.TCPStore, "queue_push"), reason="this torch has no queues")
def test_queue_with_many_producers_and_consumers(serving):
    got, lock = [], threading.Lock()

    def body(i):
        s = serving.client()
        for n in range(25):
            if i < 4:
                s.queue_push("q", f"{i}-{n}")
                continue
            while True:  # another client may be faster than the woken one: "queue is empty"
                try:
                    item = s.queue_pop("q").decode()
                    break
                except dist.DistError:
                    pass
            with lock:
                got.append(item)
    in_threads(8, body)
    assert sorted(got) == sorted(f"{i}-{n}" for i in range(4) for n in range(25))
    assert serving.client().queue_len("q") == 0


def test_cancelled_wait_leaves_the_client_usable(serving):
    s = serving.client()
    for i in range(5):
        with pytest.raises(dist.DistStoreError, match="wait timeout after 200ms"):
            s.wait([f"cancelled/{i}"], SHORT)
        s.set(f"cancelled/{i}", "late")
        assert s.get(f"cancelled/{i}") == b"late"


def test_cancel_and_set_at_the_same_moment(serving):
    """Answer and cancel cross on the wire; the client must stay in step with its bytes."""
    waiter, setter = serving.client(), serving.client()
    for i in range(100):
        timer = threading.Timer(0.010, lambda i=i: setter.set(f"cross/{i}", "x"))
        timer.start()
        try:
            waiter.wait([f"cross/{i}"], datetime.timedelta(milliseconds=10))
        except dist.DistStoreError:
            pass
        timer.join()
        assert waiter.add("cross/n", 1) == i + 1


def test_world_size_checks_in(serving):
    s = dist.TCPStore("127.0.0.1", serving.port, world_size=3, is_master=False,
                      wait_for_workers=True, timeout=datetime.timedelta(seconds=10))
    raw = serving.socket()
    raw.sendall(bytes.fromhex("00CEF7853C") + b"\x03" + blob(b"init/"))
    assert read_blob(raw) == b"1"
    del s


def test_taken_port_is_reported_as_by_torch(serving):
    command = [BIN / "cpprunctl", "serve", "--listen", f"127.0.0.1:{serving.port}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    assert done.returncode == 1
    assert "The server socket has failed to listen on any local network address" in done.stderr
    assert str(serving.port) in done.stderr


@pytest.mark.parametrize("words", [
    "", "serve", "serve --listen nonsense:port", "dance",
    "serve --listen 127.0.0.1:0 --store-value-limit-mb 0"])
def test_usage_errors_exit_with_2(words):
    done = subprocess.run([BIN / "cpprunctl", *words.split()], capture_output=True, timeout=10)
    assert done.returncode == 2


def test_binary_links_only_libc():
    out = subprocess.run(["ldd", BIN / "cpprunctl"], capture_output=True, text=True).stdout
    names = {line.split()[0].split("/")[-1].split(".")[0] for line in out.splitlines()}
    if "libasan" in names or "libtsan" in names:
        pytest.skip("a sanitizer build")
    assert names <= {"linux-vdso", "libm", "libc", "ld-linux-x86-64"}


# --- bytes of torch 2.0 and 2.1


def blob(data):
    return struct.pack("<Q", len(data)) + data


def read(s, n):
    out = b""
    while len(out) < n:
        part = s.recv(n - len(out))
        assert part, f"closed after {out!r}"
        out += part
    return out


def read_blob(s):
    return read(s, struct.unpack("<Q", read(s, 8))[0])


def test_torch_2_1_on_the_wire(serving):
    s = serving.socket()
    s.sendall(b"\x03" + blob(b"init/21") + struct.pack("<q", 1))
    assert read(s, 8) == struct.pack("<q", 1)
    s.sendall(b"\x00" + blob(b"/21/a") + blob(b"one"))           # SET
    s.sendall(b"\x08" + blob(b"/21/a") + blob(b"two"))           # APPEND
    s.sendall(b"\x02" + blob(b"/21/a"))                          # GET
    assert read_blob(s) == b"onetwo"
    s.sendall(b"\x01" + blob(b"/21/a") + blob(b"onetwo") + blob(b"x"))  # COMPARE_SET
    assert read_blob(s) == b"x"
    s.sendall(b"\x04" + struct.pack("<Q", 1) + blob(b"/21/a"))   # CHECK
    assert read(s, 1) == b"\0"
    s.sendall(b"\x05" + struct.pack("<Q", 1) + blob(b"/21/no"))  # WAIT
    s.sendall(b"\x0b")                                           # CANCEL_WAIT
    assert read(s, 1) == b"\x01"
    s.sendall(b"\x0a" + struct.pack("<Q", 2)
              + blob(b"/21/p") + blob(b"1") + blob(b"/21/q") + blob(b"2"))
    s.sendall(b"\x09" + struct.pack("<Q", 2) + blob(b"/21/q") + blob(b"/21/p"))
    assert [read_blob(s), read_blob(s)] == [b"2", b"1"]
    s.sendall(b"\x07" + blob(b"/21/a"))                          # DELETE_KEY
    assert read(s, 8) == struct.pack("<q", 1)
    assert serving.client().get("21/p") == b"1", "old and new torch share one store"


def test_torch_2_0_on_the_wire(serving):
    s, second = serving.socket(), serving.socket()  # the second one stays silent
    s.sendall(b"\x00" + blob(b"/20/a") + blob(b"one") + b"\x02" + blob(b"/20/a"))
    assert read_blob(s) == b"one"
    s.sendall(b"\x05" + struct.pack("<Q", 2) + blob(b"/20/a") + blob(b"/20/late"))
    serving.client().set("20/late", "x")
    assert read(s, 1) == b"\0"
    s.sendall(b"\x08" + blob(b"/20/a"))                          # DELETE_KEY
    assert read(s, 8) == struct.pack("<q", 1)
    s.sendall(b"\x06")                                           # GETNUMKEYS
    assert struct.unpack("<q", read(s, 8))[0] > 0
    second.close()
