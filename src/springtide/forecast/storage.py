"""Models that have learnt, as bytes: a NumPy archive of their arrays, with a header that says which model they make.

Rules: a model is its dataclass fields (see `models/registry.py`), and nothing else is stored. No code is stored, and none is
run on reading. Bytes that are damaged, or were written by a version with another format, are refused in one line.
"""

from __future__ import annotations

import dataclasses
import io
import json
import struct
import types
import zipfile
import zlib
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from springtide.errors import SpringtideError
from springtide.forecast.models.registry import models
from springtide.forecast.models.singles import RegisteredModel

FORMAT = 1

_HEADER = "header"
_MODEL = "model"
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, OSError, EOFError, ValueError, KeyError, TypeError, AttributeError)


def encoded(model: RegisteredModel) -> bytes:
    """What `decoded` makes the same model of."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    header = {"format": FORMAT, **_plain(model, arrays)}
    written = io.BytesIO()
    np.savez(written, allow_pickle=False, **{_HEADER: np.frombuffer(json.dumps(header).encode(), np.uint8)}, **arrays)
    return written.getvalue()


def decoded(stored: bytes, where: object) -> RegisteredModel:
    """The model in these bytes, which were read from `where`."""
    try:
        with np.load(io.BytesIO(stored), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        header = json.loads(bytes(arrays[_HEADER]))
        version = header["format"]
        if version == FORMAT:
            return _model(header, arrays)
    except _DAMAGE:
        raise SpringtideError(f"{where}: is damaged, or no model of Springtide's at all; train it again") from None
    raise SpringtideError(f"{where}: has the format {version} of another version, not {FORMAT}; train it again")


def _plain(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, np.ndarray):
        name = f"array{len(arrays)}"
        arrays[name] = value
        return name
    if dataclasses.is_dataclass(value):
        fields = {field.name: _plain(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
        model = getattr(value, "name", None)
        return {_MODEL: model, "fields": fields} if model in models() else fields
    if isinstance(value, tuple):
        return [_plain(item, arrays) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _model(plain: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> RegisteredModel:
    found: RegisteredModel = _built(models()[plain[_MODEL]], plain["fields"], arrays)
    return found


def _built(owner: type[Any], fields: dict[str, Any], arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    wanted = get_type_hints(owner)
    return owner(**{name: _valued(wanted[name], plain, arrays) for name, plain in fields.items()})


def _valued(wanted: Any, plain: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(wanted, types.UnionType):
        return None if plain is None else _valued(next(a for a in get_args(wanted) if a is not types.NoneType), plain, arrays)
    if get_origin(wanted) is np.ndarray:
        return arrays[plain]
    if get_origin(wanted) is tuple:
        inside = get_args(wanted)
        each = (inside[0] for _ in plain) if inside[1:] == (...,) else iter(inside)
        return tuple(_valued(kind, item, arrays) for kind, item in zip(each, plain, strict=True))
    if isinstance(plain, dict):
        return _model(plain, arrays) if _MODEL in plain else _built(wanted, plain, arrays)
    return plain
