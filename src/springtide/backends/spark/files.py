"""Small files on any file system that Arrow knows: a local path, or a URI such as s3://bucket/folder or hdfs://host/folder.

Rules: a file appears whole or not at all; a folder is never listed on the way of a batch.
"""

from __future__ import annotations

import json
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from pyarrow import fs

from springtide.errors import SpringtideError


@dataclass(frozen=True)
class Folder:
    """A folder, known by its path or URI."""

    uri: str

    def __post_init__(self) -> None:
        if "://" not in self.uri:
            path = self.uri.removeprefix("file:")  # as Hadoop writes it
            try:
                object.__setattr__(self, "uri", Path(path).expanduser().absolute().as_posix())
            except RuntimeError:
                raise SpringtideError(f"{self.uri}: there is no such user") from None

    @cached_property
    def _located(self) -> tuple[Any, str]:
        try:
            filesystem, path = fs.FileSystem.from_uri(self.uri)
        except (ValueError, OSError) as error:
            raise SpringtideError(f"{self.uri}: no such place can be reached: {_first_line(error)}") from None
        return filesystem, path

    def folder(self, name: str) -> Folder:
        place, mark, options = self.uri.partition("?") if "://" in self.uri else (self.uri, "", "")
        return Folder(f"{place.rstrip('/')}/{name}{mark}{options}")

    def path(self, name: str) -> tuple[Any, str]:
        """The file system and the path on it of a file in this folder."""
        filesystem, root = self._located
        return filesystem, f"{root}/{name}"

    def create(self) -> None:
        filesystem, root = self._located
        try:
            filesystem.create_dir(root, recursive=True)
        except OSError as error:
            raise SpringtideError(f"{self.uri}: this folder cannot be made: {_first_line(error)}") from None

    def remove(self) -> None:
        filesystem, root = self._located
        if filesystem.get_file_info(root).type is not fs.FileType.NotFound:
            filesystem.delete_dir(root)

    def holds(self, name: str) -> bool:
        """Whether there is such a file or folder in it."""
        filesystem, path = self.path(name)
        return bool(filesystem.get_file_info(path).type is not fs.FileType.NotFound)

    def adopt(self, other: Folder, name: str) -> None:
        """Take another folder of the same file system as a folder of this one; on a disk and on HDFS it appears whole."""
        filesystem, path = self.path(name)
        filesystem.move(other._located[1], path)

    def names(self) -> list[str]:
        """What is in the folder; nothing if it is not there."""
        filesystem, root = self._located
        return sorted(info.base_name for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True)))

    def read_text(self, name: str) -> str | None:
        """The file's text, or None when there is no such file."""
        filesystem, path = self.path(name)
        try:
            with filesystem.open_input_stream(path) as stream:
                return bytes(stream.read()).decode()
        except FileNotFoundError:
            return None

    def write_text(self, name: str, text: str) -> None:
        """Replace the file at once: a reader sees the old text or the new one."""
        filesystem, path = self.path(name)
        if not isinstance(filesystem, fs.LocalFileSystem):
            with filesystem.open_output_stream(path) as stream:  # object stores show a file when it is closed
                stream.write(text.encode())
            return
        written = f"{path}.{uuid.uuid4().hex}"
        with filesystem.open_output_stream(written) as stream:
            stream.write(text.encode())
        filesystem.move(written, path)

    def read_json(self, name: str) -> Any:
        text = self.read_text(name)
        return None if text is None else json.loads(text)

    def write_json(self, name: str, value: object) -> None:
        self.write_text(name, json.dumps(value, separators=(",", ":")))

    def delete(self, name: str) -> None:
        filesystem, path = self.path(name)
        with suppress(FileNotFoundError):
            filesystem.delete_file(path)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
