"""Changes to bytes, decided by a seed: the same seed gives the same bytes on every machine."""

from __future__ import annotations

import contextlib
import hashlib
import json
import random
import struct
from typing import Any

from hushsum.files import VERSION, canonical_json, digests_size, page_digests

NUMBERS = [
    0,
    1,
    -1,
    2,
    3,
    7,
    255,
    4096,
    2**24,
    2**31 - 1,
    2**31,
    2**32,
    2**53,
    2**63 - 1,
    2**63,
    2**64,
    10**4000,
]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-300, 5e-324, 1e300, 1.7e308, 1e-10, 1e6]
TEXTS = ["", "1e9999999", "1e-9999999", "0", "-1", "1/3", "1/0", "9" * 3000, "nan", "é", "\ud7ff", "x" * 500]
_PREFIX = struct.Struct("<8sIIQ")


def mutated_bytes(data: bytes, random: random.Random) -> bytes:
    """A few bytes changed, inserted, removed or repeated."""
    out = bytearray(data)
    for _ in range(random.choice([1, 1, 1, 2, 4, 8])):
        if not out:
            break
        place, kind = random.randrange(len(out)), random.random()
        if kind < 0.35:
            out[place] ^= 1 << random.randrange(8)
        elif kind < 0.6:
            out[place] = random.choice([0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)])
        elif kind < 0.75:
            width = random.choice(["<i", "<I", "<q", "<h"])
            value = random.choice([0, -1, 1, 2, 300, 5000, 99_999, 2**15 - 1, 2**31 - 1, 2**62])
            size = struct.calcsize(width)
            low = value % (1 << (8 * size - 1))
            out[place : place + size] = struct.pack(width, low)
        elif kind < 0.85:
            del out[place : place + random.choice([1, 4, 8, 32])]
        elif kind < 0.95:
            out[place:place] = random.randbytes(random.choice([1, 4, 8]))
        else:
            end = place + random.randrange(1, 64)
            out[place:place] = out[place:end]
    return bytes(out)


def mutated_json(value: Any, random: random.Random) -> Any:
    """One value somewhere inside replaced by one that may be wrong, missing, or added."""
    path: list[tuple[Any, Any]] = []
    holder = value
    while isinstance(holder, dict | list) and holder and (not path or random.random() < 0.8):
        keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
        key = random.choice(keys)
        path.append((holder, key))
        holder = holder[key]
    if not path:
        return _other(value, random)
    holder, key = path[-1]
    kind = random.random()
    if kind < 0.1:
        del holder[key]
    elif kind < 0.15 and isinstance(holder, list):
        holder.append(holder[key])
    elif kind < 0.2 and isinstance(holder, dict):
        holder["more"] = _other(holder[key], random)
    else:
        holder[key] = _other(holder[key], random)
    return value


def _other(value: Any, random: random.Random) -> Any:
    like: list[Any]
    if isinstance(value, bool) or value is None:
        like = [True, False, None, 1]
    elif isinstance(value, int):
        like = [value + 1, value - 1, -value, 2 * value, float(value % 2**53), *NUMBERS]
    elif isinstance(value, float):
        like = [-value, value * 2, value / 2, *FLOATS]
    elif isinstance(value, str):
        like = [value + "0", value[:-1], value[::-1], *TEXTS]
    else:
        like = [[], {}, None]
    everything = [*NUMBERS, *FLOATS, *TEXTS, [], {}, [[]], None, True, nested(random.choice([5, 5000]))]
    return random.choice(like if random.random() < 0.75 else everything)


def nested(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(min(depth, 900)):
        value = [value]
    return value


def split(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Prefix, header and payload of a container, whatever its lengths state."""
    length = _PREFIX.unpack_from(data)[2] if len(data) >= _PREFIX.size else 0
    body = data[_PREFIX.size : -32] if len(data) > _PREFIX.size + 32 else b""
    return data[: _PREFIX.size].ljust(_PREFIX.size, b"\0"), body[:length], body[length:]


def joined(prefix: bytes, header: bytes, payload: bytes) -> bytes:
    """A container whose version, lengths and checksum hold, and whose JSON is canonical if it is JSON."""
    magic = _PREFIX.unpack(prefix)[0]
    with contextlib.suppress(ValueError, RecursionError):
        header = canonical_json(json.loads(header))
    paged = _paged(header, len(payload))
    if paged:
        payload = payload[: -digests_size(paged)] + page_digests(memoryview(payload[:paged]))
    start = _PREFIX.pack(magic, VERSION, len(header), len(payload)) + header
    return start + payload + hashlib.sha256(start + payload[paged:]).digest()


def _paged(header: bytes, payload: int) -> int:
    """The length of the paged part, if the header gives one that the payload can have."""
    try:
        paged = json.loads(header).get("paged", 0)
    except (ValueError, RecursionError, AttributeError):
        return 0
    return paged if type(paged) is int and 0 < paged + digests_size(paged) <= payload else 0


def mutated_container(data: bytes, random: random.Random) -> bytes:
    """A container with a changed header or payload and a checksum that holds."""
    prefix, header, payload = split(data)
    kind = random.random()
    if kind < 0.75:
        try:
            value = json.loads(header)
            for _ in range(random.choice([1, 1, 1, 2, 3])):
                value = mutated_json(value, random)
            header = json.dumps(value).encode()
        except (ValueError, RecursionError):
            header = mutated_bytes(header, random)
    elif kind < 0.85:
        header = mutated_bytes(header, random)
    else:
        payload = mutated_bytes(payload, random)
    return joined(prefix, header, payload)


def mutated_hush(data: bytes, random: random.Random) -> bytes:
    """A ``.hush`` file with something changed: in its header, its payload, or a part of a model's bundle."""
    prefix, header, payload = split(data)
    try:
        about = json.loads(header)
        parts = about.get("parts") if about.get("type") == "bundle" else None
    except (ValueError, RecursionError, AttributeError):
        parts = None
    if not parts or random.random() < 0.5:
        return mutated_container(data, random)
    number = random.randrange(len(parts))
    start = sum(part["size"] for part in parts[:number])
    end = start + parts[number]["size"]
    inside = mutated_container(payload[start:end], random)
    parts[number]["size"] = len(inside)
    return joined(prefix, json.dumps(about).encode(), payload[:start] + inside + payload[end:])
