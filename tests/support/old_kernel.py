"""Runs a command as on an older kernel, where close_range() fails, or as in an emulator of system
calls. For x86-64; ends with 77 where the kernel takes no filter.

    old_kernel.py 5.8|5.10|emulator COMMAND...
"""

import ctypes
import errno
import os
import struct
import sys

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
LOAD, JUMP_IF_EQUAL, JUMP_IF_ANY, RETURN = 0x20, 0x15, 0x45, 0x06
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
NUMBER, FIRST, FLAGS = 0, 16, 16 + 2 * 8  # in struct seccomp_data
CLONE, CLONE3, CLOSE_RANGE = 56, 435, 436
CLONE_PIDFD = 0x1000


def filter_of(kernel):
    """Before 5.9 there is no close_range; before 5.11 it knows no CLOSE_RANGE_CLOEXEC. qemu-user
    before 9.1 has neither clone3 nor CLONE_PIDFD.
    """
    if kernel == 'emulator':
        yield from ((LOAD, 0, 0, NUMBER), (JUMP_IF_EQUAL, 0, 1, CLONE3))
        yield from ((RETURN, 0, 0, ERRNO | errno.ENOSYS), (JUMP_IF_EQUAL, 0, 3, CLONE))
        yield from ((LOAD, 0, 0, FIRST), (JUMP_IF_ANY, 0, 1, CLONE_PIDFD))
        yield from ((RETURN, 0, 0, ERRNO | errno.EINVAL), (RETURN, 0, 0, ALLOW))
        return
    if kernel == '5.8':
        yield from ((LOAD, 0, 0, NUMBER), (JUMP_IF_EQUAL, 0, 1, CLOSE_RANGE))
        yield from ((RETURN, 0, 0, ERRNO | errno.ENOSYS), (RETURN, 0, 0, ALLOW))
        return
    yield from ((LOAD, 0, 0, NUMBER), (JUMP_IF_EQUAL, 0, 3, CLOSE_RANGE))
    yield from ((LOAD, 0, 0, FLAGS), (JUMP_IF_EQUAL, 1, 0, 0))
    yield from ((RETURN, 0, 0, ERRNO | errno.EINVAL), (RETURN, 0, 0, ALLOW))


if __name__ == '__main__':
    steps = [struct.pack('HBBI', *step) for step in filter_of(sys.argv[1])]
    code = ctypes.create_string_buffer(b''.join(steps))
    fields = struct.pack('HxxxxxxP', len(steps), ctypes.addressof(code))
    program = ctypes.create_string_buffer(fields)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0) != 0:
        sys.exit(77)
    os.execvp(sys.argv[2], sys.argv[2:])
