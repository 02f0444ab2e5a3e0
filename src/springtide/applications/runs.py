"""The folder of one run of an application that comes with Springtide: which options it has, and whether it came to its end.

A run that was cut off goes on from its folder, with the same options; one that has ended does not begin again in it.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path
from typing import Any

from springtide.applications.shipped import ShippedApplication
from springtide.errors import SpringtideError

_ABOUT = "about.json"


@dataclasses.dataclass(frozen=True, slots=True)
class RunFolder:
    path: Path

    def begin(self, shipped: ShippedApplication) -> None:
        """Make the folder, or go on in it; refused if another run is there, or one that has ended."""
        wanted = {"application": shipped.name, "options": _options(shipped)}
        kept = self._about()
        if kept is None:
            if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
                raise SpringtideError(f"{self.path}: it is not a folder of {shipped.name}; name another with --folder")
            self._write(wanted | {"ended": False})
        elif kept["ended"]:
            raise SpringtideError(
                f"{self.path}: {kept['application']} has run in it to its end; delete it, or name another with --folder"
            )
        elif {key: kept.get(key) for key in wanted} != wanted:
            raise SpringtideError(
                f"{self.path}: {kept['application']} was begun in it with other options; give those, or another --folder"
            )

    def end(self) -> None:
        """The stream has been read to its end."""
        self._write((self._about() or {}) | {"ended": True})

    def remove(self) -> None:
        """Delete an earlier run; what is not one stays."""
        if self._about() is not None:
            shutil.rmtree(self.path)

    def _about(self) -> dict[str, Any] | None:
        try:
            about: dict[str, Any] = json.loads((self.path / _ABOUT).read_text())
        except FileNotFoundError:
            return None
        except (OSError, ValueError):
            raise SpringtideError(f"{self.path / _ABOUT}: it cannot be read; delete the folder, or name another") from None
        return about

    def _write(self, about: dict[str, Any]) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            partial = self.path / f".{_ABOUT}"
            partial.write_text(json.dumps(about, indent=2) + "\n")
            partial.replace(self.path / _ABOUT)
        except OSError as error:
            raise SpringtideError(f"{self.path}: cannot be written ({error.strerror}); name another with --folder") from None


def _options(shipped: ShippedApplication) -> dict[str, Any]:
    """As they are read back from the file."""
    found: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(shipped)))  # type: ignore[call-overload]
    return found
