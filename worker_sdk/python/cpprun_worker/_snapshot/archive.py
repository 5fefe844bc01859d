"""The layout of a tensor file: a zip file in torch.save's format, whose places follow from the
names and sizes of its storages alone, so that each rank can write its share of one file.

C++ counterparts: snapshot_files/archive/plan.hpp (the same layout, byte for byte), crc32.hpp, and
worker_sdk/cpprun/snapshot/save/shard_plan.hpp.
"""

from __future__ import annotations

import functools
import struct
import zlib
from typing import NamedTuple

BLOCK = 4096
BIG = 64 * 1024  # storages from this size on have blocks of their own
SMALL_ALIGNMENT = 64
_POLYNOMIAL = 0xEDB88320
_IN_64, _COUNT_IN_64 = 0xFFFFFFFF, 0xFFFF
_FOLDER = 'archive/'
_VERSION, _VERSION_64, _UTF8_NAMES = 20, 45, 1 << 11
_DATE = 1 << 5 | 1  # 1980-01-01, so that equal states give equal bytes
_PADDING_FIELD = 0x4246  # "FB", torch's id
_CRC_PIECE = 4 << 20


def align_up(at, to):
    return (at + to - 1) // to * to


def _times_x(a):
    """A polynomial times x, modulo crc32's; bit 31 is the coefficient of x^0."""
    return a >> 1 ^ _POLYNOMIAL if a & 1 else a >> 1


def _multiply(a, b):
    """Product of two polynomials modulo crc32's."""
    product = 0
    while a:
        if a & 0x80000000:
            product ^= b
        a = (a << 1) & 0xFFFFFFFF
        b = _times_x(b)
    return product


@functools.lru_cache(maxsize=4096)
def _shift_by(size):
    """x^(8 * size)."""
    power, square = 0x80000000, 0x00800000  # x^0, x^8
    while size:
        if size & 1:
            power = _multiply(square, power)
        square = _multiply(square, square)
        size >>= 1
    return power


@functools.lru_cache(maxsize=1024)
def _products(size):
    """x^(8 * size) times each value of each of the eight hexadecimal digits of a crc32, the lowest
    digit first: a product is ten times as fast by them, and many storages have the same size."""
    of_bit = [_shift_by(size)]
    for _ in range(31):
        of_bit.append(_times_x(of_bit[-1]))
    of_bit.reverse()
    products = []
    for digit in range(0, 32, 4):
        of_value = [0]
        for bit in of_bit[digit : digit + 4]:
            of_value += [bit ^ each for each in of_value]
        products.append(of_value)
    return products


def crc32_combine(first, second, size):
    """crc32 of two pieces one behind the other; `size`: bytes of the second."""
    a, b, c, d, e, f, g, h = _products(size)
    low = a[first & 15] ^ b[first >> 4 & 15] ^ c[first >> 8 & 15] ^ d[first >> 12 & 15]
    high = e[first >> 16 & 15] ^ f[first >> 20 & 15] ^ g[first >> 24 & 15] ^ h[first >> 28]
    return low ^ high ^ second


def crc32(content, crc=0):
    """In pieces, each without Python's interpreter lock."""
    view = memoryview(content)
    for at in range(0, len(view), _CRC_PIECE):
        crc = zlib.crc32(view[at : at + _CRC_PIECE], crc)
    return crc


class Place(NamedTuple):
    """Where a storage lies in the file."""

    name: str
    header_at: int
    data_at: int
    size: int


def _place_at(header_at, name, size, alignment):
    long = 4 + 16 if size >= _IN_64 else 0
    header = 30 + len(_FOLDER) + len(name) + long + 4
    return Place(name, header_at, align_up(header_at + header, alignment), size)


def _low(number):
    return min(number, _IN_64)


_crc = struct.Struct('<I').pack


def _local_header(place, crc):
    before, after, padding = _around_local_crc(place)
    return before + _crc(crc) + after + bytes(padding)


def _central_header(place, crc):
    before, after = _around_central_crc(place)
    return before + _crc(crc) + after


@functools.lru_cache(maxsize=16384)  # a save differs from the one before in the crc32s only
def _around_local_crc(place):
    """What precedes the crc32, what follows it, and how many zeros end the header."""
    name = (_FOLDER + place.name).encode()
    is_long = place.size >= _IN_64
    version = _VERSION_64 if is_long else _VERSION
    extra = place.data_at - place.header_at - 30 - len(name)
    low = _low(place.size)
    head = struct.pack('<IHHHHH', 0x04034B50, version, _UTF8_NAMES, 0, 0, _DATE)
    sizes = struct.pack('<HHQQ', 1, 16, place.size, place.size) if is_long else b''
    padding = extra - len(sizes) - 4
    field = struct.pack('<HH', _PADDING_FIELD, padding)
    return head, struct.pack('<IIHH', low, low, len(name), extra) + name + sizes + field, padding


@functools.lru_cache(maxsize=16384)
def _around_central_crc(place):
    name = (_FOLDER + place.name).encode()
    longs = (place.size, place.size) if place.size >= _IN_64 else ()
    longs += (place.header_at,) if place.header_at >= _IN_64 else ()
    extra = struct.pack(f'<HH{len(longs)}Q', 1, 8 * len(longs), *longs) if longs else b''
    version = _VERSION_64 if longs else _VERSION
    low = _low(place.size)
    head = struct.pack('<IHHHHHH', 0x02014B50, _VERSION_64, version, _UTF8_NAMES, 0, 0, _DATE)
    fields = (low, low, len(name), len(extra), 0, 0, 0, 0, _low(place.header_at))
    return head, struct.pack('<IIHHHHHII', *fields) + name + extra


def _end(records, at, size):
    """The end of the zip's directory."""
    out = b''
    if records >= _COUNT_IN_64 or at >= _IN_64 or size >= _IN_64:
        versions = (44, _VERSION_64, _VERSION_64, 0, 0)
        out = struct.pack('<IQHHIIQQQQ', 0x06064B50, *versions, records, records, size, at)
        out += struct.pack('<IIQI', 0x07064B50, 0, at + size, 1)
    count = min(records, _COUNT_IN_64)
    return out + struct.pack('<IHHHHIIH', 0x06054B50, 0, 0, count, count, _low(size), _low(at), 0)


class Plan:
    """Places of the storages [(name, bytes)], and the bytes between and behind them."""

    def __init__(self, storages):
        self.places, at = [], 0  # in the order of the file
        for is_big in (True, False):
            for name, size in storages:
                if (size >= BIG) == is_big:
                    at = align_up(at, BLOCK) if is_big else at
                    alignment = BLOCK if is_big else SMALL_ALIGNMENT
                    self.places.append(_place_at(at, f'data/{name}', size, alignment))
                    at = self.places[-1].data_at + size
            at = align_up(at, BLOCK) if is_big else at
        self.tail_at = at
        self.by_name = {place.name[len('data/') :]: place for place in self.places}

    @classmethod
    @functools.lru_cache(maxsize=16)  # of the files of a Snapshot, the same in each save
    def of(cls, storages):
        """`storages`: a tuple. The result is shared."""
        return cls(storages)

    def header(self, storage, crc):
        """(offset, bytes) of what lies in front of a storage with this crc32, by its name."""
        place = self.by_name[storage]
        return place.header_at, _local_header(place, crc)

    def rest(self, pickle, crc_of, headers_of=None):
        """Everything but the storages: ([(offset, bytes)], size of the file, its crc32). `crc_of`
        has the crc32 of each storage, by name. `headers_of`: leaves out the headers of others."""
        pieces, whole, at = [], 0, 0
        crcs = [crc_of[storage] for storage in self.by_name]
        directory = b''.join(map(_central_header, self.places, crcs))
        for (storage, place), crc in zip(self.by_name.items(), crcs):
            header = _local_header(place, crc)
            if headers_of is None or storage in headers_of:
                pieces.append((place.header_at, header))
            if place.header_at > at:
                whole = crc32(bytes(place.header_at - at), whole)
            whole = crc32(header, whole)
            whole = crc32_combine(whole, crc, place.size)
            at = place.data_at + place.size
        tail, records = self._tail(pickle, directory)
        whole = crc32(tail, crc32(bytes(self.tail_at - at), whole))
        pieces.append((self.tail_at, tail))
        return pieces, self.tail_at + len(tail), whole

    def _tail(self, pickle, directory):
        tail = b''
        contents = (('data.pkl', pickle), ('byteorder', b'little'), ('version', b'3\n'))
        for name, content in contents:
            at = self.tail_at + len(tail)
            place = _place_at(at, name, len(content), SMALL_ALIGNMENT)
            crc = crc32(content)
            tail += _local_header(place, crc) + content
            directory += _central_header(place, crc)
        records = len(self.places) + len(contents)
        tail += directory + _end(records, self.tail_at + len(tail), len(directory))
        return tail, records


class Part(NamedTuple):
    """A range of a storage, and the piece of the file that it belongs to."""

    storage: str
    at: int
    size: int
    piece: int


def plan_parts(storages, pieces):
    """Divides storages [(name, bytes, is_leaders)] into pieces, which are equal up to a block. Each
    byte is in one part. What `is_leaders` marks is in the first piece."""
    total = sum(size for _, size, is_leaders in storages if not is_leaders)
    each = total // pieces

    def piece_of(place):
        return min(place // each, pieces - 1) if each else pieces - 1

    parts, place = [], 0  # place: in the bytes that are divided
    for name, size, is_leaders in storages:
        if is_leaders or size < BIG:
            parts.append(Part(name, 0, size, 0 if is_leaders else piece_of(place)))
            place += 0 if is_leaders else size
            continue
        at = 0
        while at < size:
            piece = piece_of(place + at)
            end = size
            if piece + 1 < pieces:
                end = min(size, align_up((piece + 1) * each - place, BLOCK))
            parts.append(Part(name, at, end - at, piece))
            at = end
        place += size
    return parts
