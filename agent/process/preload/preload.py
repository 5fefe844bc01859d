"""The preload process of cpprun's agent: imports modules once and forks workers from itself.

The agent starts it with the workers' interpreter and sends the text of script_imports.py and of
this file over the socket that is its stdin, then the settings. preload_process.hpp and
fork_batch.hpp describe the messages. Only the standard library, Python 3.8 and newer. In a forked
worker main() returns the worker's command line, and run_program() runs it as the interpreter itself
would.
"""
import _socket
import _thread
import array
import ctypes
import gc
import os
import signal
import sys
import time

OWN_FILE = "<cpprun preload>"
MESSAGE_MAX = 1 << 16
DESCRIPTORS_MAX = 253  # of one message
STREAMS = 4  # of a worker: specification, stdin, stdout, stderr
ACCELERATORS = ("/dev/nvidia", "/dev/kfd", "/dev/dri")
# For the time of the imports. OpenBLAS starts its threads when it is loaded; torch asks CUDA for
# devices unless the second one is set.
WHILE_IMPORTING = {"OPENBLAS_NUM_THREADS": "1", "PYTORCH_NVML_BASED_CUDA_CHECK": "1"}
# The same, unless the user has set it: pyarrow's malloc frees memory in a thread of its own.
BY_DEFAULT = {"JE_ARROW_MALLOC_CONF": "background_thread:false"}
# What a module imports when a program first uses it: torch its compiler, for the first optimizer or
# the first DistributedDataParallel, which takes half of the time of `import torch`.
AT_FIRST_USE = {"torch": "torch._dynamo"}
# What these imports need besides torch itself: the slowest first.
NEEDED_BY_TORCH = ("sympy", "torchgen.model", "asyncio", "unittest.mock", "numpy")
# Where one of these is set, the order in which torch loads its libraries matters.
OF_LIBRARIES = ("LD_LIBRARY_PATH", "LD_PRELOAD", "TORCH_USE_RTLD_GLOBAL")
# Objects that must pile up before the collector of cycles runs: the imports make fewer. Nearly all
# of their objects live on, so collections only cost time.
NO_COLLECTION = 1 << 30
MAIN_NAMES = frozenset((
    "__name__", "__doc__", "__package__", "__loader__", "__spec__", "__annotations__",
    "__builtins__"))
PR_SET_PDEATHSIG = 1
PR_SET_MM, PR_SET_MM_MAP = 35, 14
SIGKILL = 9


class Refusal(Exception):
    """No worker can be forked from this process: the module, and why. preload_process.hpp lists the
    kinds."""

    def __init__(self, module, reason, kind="module"):
        super().__init__(reason)
        self.module = module
        self.reason = reason
        self.kind = kind


class Preload:
    """State of the preload process that its workers use after the fork."""

    def __init__(self):
        self.socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET, 0, os.dup(0))
        null = os.open(os.devnull, os.O_RDONLY)
        os.dup2(null, 0)
        os.close(null)
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.pid = os.getpid()
        self.folder = os.getcwd()
        self.given = {}   # the environment as the agent gave it
        self.changed = {}  # what the imports changed in it; None: removed
        self.stamps = {}
        self.inherited = open_descriptors()
        settings = self.socket.recv(MESSAGE_MAX).split(b"\0")
        self.agent = int(settings[0])
        self.is_auto = settings[1] == b"auto"
        self.modules = [os.fsdecode(name) for name in settings[2].split(b",") if name]
        self.command = [os.fsdecode(word) for word in settings[3:]]  # PATH -u [-m] SCRIPT
        self.titles = Titles(self.libc)

    def send(self, *parts):
        self.socket.send(b"\0".join(os.fsencode(part)[:MESSAGE_MAX // 4] for part in parts))

    def take_environment(self):
        """Copies the variables to the heap, because workers overwrite the initial block."""
        os.environ.pop("CPPRUN_PRELOAD_ROOM", None)
        self.given = dict(os.environ)
        for name, value in self.given.items():
            os.environ[name] = value


def read_file(path):
    with open(path, "rb") as file:
        return file.read()


# ------------------------------------------------------------------------------- imports


def open_descriptors():
    """What the descriptors above the standard streams lead to."""
    found = set()
    for name in os.listdir("/proc/self/fd"):
        if int(name) <= 2:
            continue
        try:
            found.add(os.readlink("/proc/self/fd/" + name))
        except OSError:
            pass  # the one that lists the folder
    return found


def count_threads():
    """Of this process. A thread that is about to end gets a moment for that."""
    for _ in range(50):
        count = len(os.listdir("/proc/self/task"))
        if count == 1:
            break
        time.sleep(0.01)
    return count


def has_children():
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def violation(state):
    """Why no worker can be forked from this process; "": it can."""
    threads = count_threads()
    if threads != 1:
        return "it has started %d thread%s" % (threads - 1, "" if threads == 2 else "s")
    for target in open_descriptors() - state.inherited:
        if target.startswith(ACCELERATORS):
            return "it has opened the device " + target
        if target.startswith(("socket:", "pipe:", "anon_inode:")) or target.startswith("/dev/pts"):
            return "it holds an open descriptor that processes cannot share (%s)" % target
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and getattr(cuda, "is_initialized", bool)():
        return "it has initialised CUDA"
    if has_children():
        return "it has started a process"
    if os.getcwd() != state.folder:
        return "it has changed the working directory"
    return ""


def root_of(name):
    return name.partition(":")[0].partition(".")[0]


def import_module(name):
    """As `import a.b` does for "a.b", and `from a import b` for "a:b"."""
    import importlib
    module, _, attribute = name.partition(":")
    found = importlib.import_module(module)
    if attribute and getattr(found, attribute, None) is None and hasattr(found, "__path__"):
        importlib.import_module(module + "." + attribute)


def torch_libraries():
    """Those that `import torch` loads, with its flags for dlopen(). Empty: only torch should load
    them."""
    if any(name in os.environ for name in OF_LIBRARIES):
        return []
    import importlib.util
    spec = importlib.util.find_spec("torch")
    places = list(spec.submodule_search_locations or []) if spec else []
    folder = os.path.join(places[0], "lib") if places else ""
    found = [(os.path.join(folder, "libtorch_global_deps.so"), os.RTLD_NOW | os.RTLD_GLOBAL),
             (os.path.join(folder, "libtorch.so"), os.RTLD_NOW)]
    return found if all(os.path.isfile(path) for path, _ in found) else []


def prepare_torch(state):
    """Loads torch's libraries on another thread, which needs no interpreter for that, and meanwhile
    imports what torch imports as well. Both take half a second."""
    libraries = torch_libraries()
    if not libraries:
        return
    import decimal, shutil, typing  # noqa: E401, F401  their libraries: one thread loads at a time
    is_loading = _thread.allocate_lock()

    def load():
        try:
            dlopen = state.libc.dlopen  # called so, it leaves the interpreter to other threads
            dlopen.argtypes, dlopen.restype = [ctypes.c_char_p, ctypes.c_int], ctypes.c_void_p
            for path, flags in libraries:
                if not dlopen(os.fsencode(path), flags):
                    break  # torch reports the reason
        finally:
            is_loading.release()

    is_loading.acquire()
    _thread.start_new_thread(load, ())
    try:
        for name in NEEDED_BY_TORCH:
            try:
                import_module(name)
            except Exception:  # torch works without it, or reports what is wrong
                pass
    finally:
        is_loading.acquire()


def import_one(state, name, ignored=()):
    """`ignored`: the exceptions that leave the module to the program."""
    state.send("importing", name)
    try:
        if root_of(name) == "torch" and "torch" not in sys.modules:
            prepare_torch(state)
        import_module(name)
    except Exception as error:
        if os.getpid() == state.pid and not isinstance(error, ignored):
            raise Refusal(name, "its import failed: " + one_line(error)) from None
    except BaseException as error:  # SystemExit, KeyboardInterrupt
        if os.getpid() == state.pid:
            raise Refusal(name, "its import ended the program: " + one_line(error)) from None
    if os.getpid() != state.pid:
        os._exit(0)  # the module forked, and this is the child
    reason = violation(state)
    if reason:
        raise Refusal(name, reason)


def one_line(error):
    text = "%s: %s" % (type(error).__name__, error)
    return " ".join(text.split())[:300]


def check_interpreter(state):
    """A script that starts Python may give each worker something else."""
    program = state.command[0]
    if os.path.realpath(program) != os.path.realpath("/proc/self/exe"):
        raise Refusal("", program + " is no Python itself but starts one; PYTHON_EXEC can name "
                      "the interpreter", "interpreter")


def import_all(state):
    temporary = {**BY_DEFAULT, **state.given, **WHILE_IMPORTING}
    os.environ.update(temporary)
    is_module = state.command[2:3] == ["-m"]
    place = main_path(state.command[3 if is_module else 2], is_module)
    if place is not None:
        sys.path[0] = place  # instead of "", which -c puts there
    names = script_imports(state) if state.is_auto else state.modules
    state.send("script", "awaits" if state.is_auto or may_import(state) else "free")
    thresholds = gc.get_threshold()
    gc.set_threshold(NO_COLLECTION)
    begin = time.monotonic()
    for at, name in enumerate(names):
        import_one(state, name, ImportError if state.is_auto else ())
        if "torch" in sys.modules and at + 1 < len(names):
            try_fork(name)
    for module, name in AT_FIRST_USE.items():
        if module in sys.modules:
            import_one(state, name, Exception)
    try_fork(names[-1] if "torch" in sys.modules else "")
    took = time.monotonic() - begin
    gc.freeze()  # before a collection, which would take 0.3 s for some thousand objects of torch
    if gc.get_threshold()[0] == NO_COLLECTION:  # else a module has set its own
        gc.set_threshold(*thresholds)
    if place is not None:
        del sys.path[0]
    for name in set(os.environ) | set(temporary):
        if os.environ.get(name) != temporary.get(name):
            state.changed[name] = os.environ.get(name)
    return names, took


def main_path(script, is_module):
    """sys.path[0] of the program; None: it has none."""
    if getattr(sys.flags, "safe_path", False) or sys.flags.isolated:
        return None
    if is_module:
        return os.getcwd()
    if importer_of(script) is not None:
        return whole_path(script)
    try:
        return os.path.dirname(os.path.realpath(script, strict=True))
    except TypeError:  # before Python 3.10
        return os.path.dirname(os.path.realpath(script))
    except OSError:
        return os.path.dirname(script)


def importer_of(path):
    """Not None: the path is a folder or an archive, which may hold __main__.py."""
    for hook in sys.path_hooks:
        try:
            return hook(path)
        except ImportError:
            pass
    return None


# ------------------------------------------------------------------------------- stamps


def stamp_of(path):
    try:
        status = os.stat(path)
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def take_stamps(state):
    paths = set()
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str):
            paths.add(path)
    for line in read_file("/proc/self/maps").splitlines():
        words = line.split(None, 5)
        if len(words) == 6 and words[5].startswith(b"/") and not words[5].startswith(b"/dev/"):
            paths.add(os.fsdecode(words[5]))
    state.stamps = {path: stamp_of(path) for path in paths}


def changed_file(state):
    """The first imported file that differs from what was imported; "": none."""
    for path, stamp in state.stamps.items():
        if stamp is not None and stamp_of(path) != stamp:
            return path
    return ""


# ------------------------------------------------------------------------------- the process


def try_fork(module):
    """Forks once on trial: torch may refuse to use its devices in a child."""
    child = os.fork()
    if child == 0:
        torch = sys.modules.get("torch")
        for device in ("cuda", "xpu", "mps"):
            is_bad = getattr(getattr(torch, device, None), "_is_in_bad_fork", bool)
            if is_bad():
                os._exit(1)
        os._exit(0)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done == child:
            if status != 0:
                raise Refusal(module, "it has asked an accelerator for its devices")
            return
        time.sleep(0.001)
    os.kill(child, SIGKILL)
    raise Refusal(module, "a process that is forked after its import does not run")


class MemoryMap(ctypes.Structure):
    """struct prctl_mm_map; the first eleven fields are addresses."""
    _fields_ = [("addresses", ctypes.c_uint64 * 11), ("auxv", ctypes.c_uint64),
                ("auxv_size", ctypes.c_uint32), ("exe_fd", ctypes.c_uint32)]


class Titles:
    """The command line and the initial environment of this process, as /proc shows them.

    Both are memory of the process, which it overwrites. Their lengths change where the kernel
    allows it (PR_SET_MM_MAP); elsewhere zero bytes follow the text.
    """

    def __init__(self, libc):
        self.libc = libc
        words = read_file("/proc/self/stat").rpartition(b") ")[2].split()
        numbers = [int(word) for word in words[1:]]  # from the fourth field on
        code, stack, data, ends = numbers[22:24], numbers[24], numbers[41:43], numbers[44:48]
        self.fixed = code + data + [numbers[43], 0, stack]
        self.areas = {"arguments": ends[:2], "environment": ends[2:]}
        self.ends = {"arguments": ends[1], "environment": ends[3]}

    def room(self, area):
        start, end = self.areas[area]
        return end - start

    def write(self, area, text):
        start, end = self.areas[area]
        if end <= start:
            return
        text = text[:end - start - 1] + b"\0"
        ctypes.memmove(start, text + b"\0" * (end - start - len(text)), end - start)
        self.ends[area] = start + len(text)

    def shorten(self):
        self.libc.sbrk.restype = ctypes.c_uint64
        self.libc.sbrk.argtypes = [ctypes.c_long]
        addresses = self.fixed[:5] + [self.libc.sbrk(0)] + self.fixed[6:]
        for area in ("arguments", "environment"):
            addresses += [self.areas[area][0], self.ends[area]]
        block = MemoryMap((ctypes.c_uint64 * 11)(*addresses), 0, 0, 0xFFFFFFFF)
        self.libc.prctl(PR_SET_MM, ctypes.c_ulong(PR_SET_MM_MAP), ctypes.byref(block),
                        ctypes.c_ulong(ctypes.sizeof(block)), ctypes.c_ulong(0))


def main():
    """Serves until the agent ends. In a forked worker: returns its command line."""
    state = Preload()
    state.take_environment()
    state.titles.write("arguments", b"cpprun-preload")
    state.titles.shorten()
    try:
        check_interpreter(state)
        names, took = import_all(state)
    except Refusal as refusal:
        state.send("refused", refusal.kind, refusal.module, refusal.reason)
        os._exit(0)
    take_stamps(state)
    state.send("ready", "%.6f" % took, ",".join(names))
    while True:
        message, descriptors = receive(state.socket)
        if message == b"check":
            state.send("checked", changed_file(state))
        elif message == b"fork" and descriptors:
            command = fork_workers(state, descriptors)
            if command is not None:
                return command
        elif not message:
            os._exit(0)  # the agent has closed the socket


def receive(socket):
    descriptors = array.array("i")
    room = _socket.CMSG_SPACE(DESCRIPTORS_MAX * descriptors.itemsize)
    message, ancillary, _, _ = socket.recvmsg(MESSAGE_MAX, room)
    for level, kind, data in ancillary:
        if level == _socket.SOL_SOCKET and kind == _socket.SCM_RIGHTS:
            descriptors.frombytes(data[:len(data) - len(data) % descriptors.itemsize])
    return message, list(descriptors)


def fork_workers(state, gates):
    """One intermediate process forks all workers. In a worker: its command line. Here: None."""
    is_over, over = os.pipe()  # closed when the intermediate process ends
    try:
        child = os.fork()
    except OSError as error:
        child = -1
        for gate in gates:
            report_failure(gate, error)
    if child == 0:
        parent = os.getpid()
        gate = fork_each(gates)
        try:
            os.close(over)
            return become_worker(state, gate, is_over, parent)
        except BaseException as error:
            report_failure(gate, error)
            os._exit(1)
    for descriptor in gates + [is_over, over]:
        os.close(descriptor)
    if child > 0:
        os.waitpid(child, 0)
    return None


def fork_each(gates):
    """Returns in each worker, with its gate. The intermediate process ends, and the agent becomes
    the workers' parent."""
    for at, gate in enumerate(gates):
        try:
            child = os.fork()
        except OSError as error:
            report_failure(gate, error)
            child = -1
        if child == 0:
            for other in gates[at + 1:]:
                os.close(other)
            return gate
        os.close(gate)
    os._exit(0)


def report_failure(gate, error):
    try:
        os.write(gate, b"E" + os.fsencode(one_line(error)))
    except OSError:
        pass  # the agent has given this worker up


# ------------------------------------------------------------------------------- a worker


def become_worker(state, gate, is_over, parent):
    state.socket.close()
    os.read(is_over, 1)  # until the intermediate process ends
    os.close(is_over)
    while os.getppid() == parent:
        time.sleep(0.0002)
    os.write(gate, b"P%d" % os.getpid())
    socket = _socket.socket(fileno=gate)
    message, streams = receive(socket)
    socket.detach()
    if message != b"G" or len(streams) != STREAMS:
        os._exit(1)  # the agent has given this worker up
    specification, stdin, stdout, stderr = streams
    unused = ctypes.c_ulong(0)
    state.libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(SIGKILL), unused, unused, unused)
    if os.getppid() != state.agent:
        os._exit(1)
    os.setsid()
    command, environment, cpus, ignored = read_specification(specification)
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)
    if cpus:
        os.sched_setaffinity(0, cpus)
    for target, source in enumerate((stdin, stdout, stderr)):
        os.dup2(source, target)
    renew_stdin()
    set_environment(state, environment)
    state.titles.write("arguments", b"\0".join(os.fsencode(word) for word in command))
    state.titles.shorten()
    restore_threads(bool(cpus))
    renew_randomness()
    for descriptor in (specification, stdin, stdout, stderr):
        os.close(descriptor)
    os.write(gate, b"K")
    os.close(gate)
    return command


def renew_stdin():
    """Python's reader of stdin keeps what it knew of the file at its start."""
    import io
    old = sys.__stdin__
    file = open(0, "rb", closefd=False)
    file.raw.name = "<stdin>"
    new = io.TextIOWrapper(file, encoding=old.encoding, errors=old.errors, newline="\n",
                           line_buffering=old.line_buffering, write_through=old.write_through)
    new.mode = "r"
    if sys.stdin is old:
        sys.stdin = new
    sys.__stdin__ = new


def read_specification(descriptor):
    size = os.fstat(descriptor).st_size
    parts = os.pread(descriptor, size, 0).split(b"\0")
    count = int(parts[0])
    command = [os.fsdecode(word) for word in parts[1:1 + count]]
    cpus, ignored = ([int(number) for number in part.split(b",") if number]
                     for part in parts[1 + count:3 + count])
    return command, parts[3 + count:-1], cpus, ignored


def set_environment(state, entries):
    """The worker's variables, and on top of them what the imported modules have changed."""
    os.environ.clear()
    for entry in entries:
        name, found, value = entry.partition(b"=")
        if found and name and name not in os.environb:
            os.environb[name] = value
    given = dict(os.environ)
    for name, value in state.changed.items():
        if given.get(name) != state.given.get(name):
            continue  # this worker's own value
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    if sum(len(entry) + 1 for entry in entries) >= state.titles.room("environment"):
        # First those by which cpprun finds processes.
        entries = sorted(entries, key=lambda entry: not entry.startswith(
            (b"CPPRUN_TOKEN=", b"LOCAL_RANK=")))
    state.titles.write("environment", b"\0".join(entries))


def loaded_libraries(part):
    paths = set()
    for line in read_file("/proc/self/maps").splitlines():
        path = line.split(None, 5)[5:]
        if path and part in os.path.basename(path[0]):
            paths.add(os.fsdecode(path[0]))
    return paths


def restore_threads(has_cpus):
    """Gives OpenBLAS and OpenMP the numbers of threads that they would take at their start."""
    variables = ("OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
    texts = [os.environ.get(name, "") for name in variables]
    cpus = len(os.sched_getaffinity(0))  # OpenBLAS takes no more
    number = min(cpus, next((int(text) for text in texts if text.isdigit() and int(text)), cpus))
    for path in loaded_libraries(b"openblas") if number > 1 else ():
        library = ctypes.CDLL(path)
        for name in ("openblas_set_num_threads", "openblas_set_num_threads64_",
                     "scipy_openblas_set_num_threads", "scipy_openblas_set_num_threads64_"):
            if hasattr(library, name):
                getattr(library, name)(number)
    if has_cpus and not os.environ.get("OMP_NUM_THREADS"):
        for path in loaded_libraries(b"libgomp") | loaded_libraries(b"libiomp"):
            ctypes.CDLL(path).omp_set_num_threads(len(os.sched_getaffinity(0)))


def renew_randomness():
    """What a new process draws at an import. Python's own `random` renews itself after a fork."""
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed()
    process = sys.modules.get("multiprocessing.process")
    if process is not None:
        config = process.current_process()._config
        if "authkey" in config:
            config["authkey"] = type(config["authkey"])(os.urandom(32))


# ------------------------------------------------------------------------------- the program


def run_program(command):
    """Runs `python -u [-m] PROGRAM ARGUMENTS` in the module __main__.

    Exceptions leave by the interpreter's own way, which decides about the exit code; only the
    frames of this file are hidden.
    """
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = command
    main = sys.modules["__main__"].__dict__
    for name in set(main) - MAIN_NAMES:
        del main[name]
    try:
        if command[2] == "-m":
            sys.argv[:] = ["-m"] + command[4:]
            prepend(main_path("", True))
            import runpy
            runpy._run_module_as_main(command[3], alter_argv=True)
        else:
            sys.argv[:] = command[2:]
            run_script(command[2], main)
    except SystemExit:
        raise
    except BaseException as error:
        hide_own_frames(error)
        raise


def prepend(place):
    if place is not None:
        sys.path.insert(0, place)


def whole_path(script):
    if sys.version_info >= (3, 9) and not os.path.isabs(script):
        return os.path.join(os.getcwd(), script)
    return script


def run_script(script, main):
    if importer_of(script) is not None:
        prepend(whole_path(script))
        import runpy
        runpy._run_module_as_main("__main__", alter_argv=False)
        return
    prepend(main_path(script, False))
    path = whole_path(script)
    if script == "-":
        source = sys.stdin.buffer.read()
        path = "<stdin>"
    else:
        try:
            source = read_file(path)
        except OSError as error:
            sys.stderr.write("%s: can't open file %r: [Errno %d] %s\n" % (
                sys.executable, path, error.errno, error.strerror))
            raise SystemExit(2) from None
    code = load_code(script, path, source, main)
    del source
    exec(code, main)


def load_code(script, path, source, main):
    from importlib.machinery import SourceFileLoader, SourcelessFileLoader
    is_compiled = script.endswith(".pyc")
    main["__file__"] = path
    main["__cached__"] = None
    if script != "-":
        loader = SourcelessFileLoader if is_compiled else SourceFileLoader
        main["__loader__"] = loader("__main__", path)
    if is_compiled:
        import marshal
        return marshal.loads(source[16:])
    return compile(source, path, "exec", dont_inherit=True)


def hide_own_frames(error):
    """For the interpreter's report of an exception that the program does not catch."""
    hook = sys.excepthook
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == OWN_FILE:
        frames = frames.tb_next

    def report(kind, value, _):
        sys.excepthook = hook
        hook(kind, value.with_traceback(frames), frames)

    sys.excepthook = report


if __name__ == "_cpprun_preload":
    run_program(main())
