"""Durable state: the container of files and messages, encryption, atomic writes, the rollback guard."""

from ._container import (
    VERSION,
    Buffer,
    FileKind,
    Header,
    PageCheck,
    Section,
    build_from,
    check_spelling,
    container,
    digests_size,
    pack,
    page_digests,
    read_container,
    unpack,
    write_container,
)
from ._durable import SharedText, atomic_file, state_folder
from ._encoding import (
    MOST_DIGITS,
    REAL,
    PackedForm,
    PackedTable,
    Stored,
    TablePacker,
    canonical_json,
    cheapest_form,
    check_packed,
    data_bytes,
    declared_fields,
    decode_array,
    encode_array,
    encoded_size,
    narrowest_type,
    pack_integers,
    padded_json,
    padded_size,
    stored_rational,
    unpack_integers,
)
from ._encryption import CHUNK, KEY_BYTES, SecretFile, decrypt, encrypt, encrypted_size, seal, unseal
from ._rollback_guard import GuardPlace, NumberGuard, PlacedGuard, RollbackGuard

__all__ = [
    "CHUNK", "KEY_BYTES", "MOST_DIGITS", "REAL", "VERSION", "Buffer", "FileKind", "GuardPlace", "Header",
    "NumberGuard", "PackedForm", "PackedTable", "PageCheck", "PlacedGuard", "RollbackGuard", "SecretFile",
    "Section", "SharedText", "Stored", "TablePacker", "atomic_file", "build_from", "canonical_json",
    "cheapest_form",
    "check_packed", "check_spelling", "container", "data_bytes", "declared_fields", "decode_array", "decrypt",
    "digests_size", "encode_array", "encoded_size", "encrypt", "encrypted_size", "narrowest_type", "pack",
    "pack_integers", "padded_json", "padded_size", "page_digests", "read_container", "seal", "state_folder",
    "stored_rational", "unpack", "unpack_integers", "unseal", "write_container",
]  # fmt: skip
