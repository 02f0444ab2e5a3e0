"""The folder of prepared data while it is written: rows are made beside their place, and then moved.

Rules: what is there stays as it is until everything new is complete. Then a file says that rows are being moved, the manifest
is replaced, and the file goes: a run that is killed in between leaves that file, and the next one writes all rows anew.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from springtide.errors import SpringtideError
from springtide.forecast.pipeline.prepared import MANIFEST, UNFINISHED, Prepared, write_manifest
from springtide.forecast.pipeline.writing import series_folder

STAGING = ".staging"
COUNTS = "counts"
ROWS = ("rates", "windows")

_OURS = {MANIFEST, UNFINISHED, STAGING, COUNTS, *ROWS}


def refuse_foreign(folder: Path) -> None:
    """Refuse a folder with something else in it, because files in it would be replaced."""
    if folder.is_file():
        raise SpringtideError(f"{folder}: is a file; choose a folder for prepared data")
    if folder.is_dir() and not (folder / MANIFEST).exists():
        foreign = sorted(entry.name for entry in folder.iterdir() if entry.name not in _OURS)
        if foreign:
            raise SpringtideError(f"{folder}: holds {foreign[0]!r} and no {MANIFEST}; choose an empty folder for prepared data")


@contextmanager
def staging_in(folder: Path) -> Iterator[Path]:
    """An empty folder beside the rows, gone at the end; so is what a killed run left, and a new folder that stays empty."""
    staging, was_there = folder / STAGING, folder.is_dir()
    shutil.rmtree(staging, ignore_errors=True)
    try:
        staging.mkdir(parents=True)
    except OSError as error:
        raise SpringtideError(f"{folder}: cannot be written to: {error.strerror}") from None
    try:
        yield staging
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if not was_there:
            with suppress(OSError):
                folder.rmdir()  # if nothing came of it


def is_unfinished(folder: Path) -> bool:
    return (folder / UNFINISHED).exists()


def publish(prepared: Prepared, staging: Path, before: Prepared | None) -> None:
    """Move the rows that were made into place, remove those that are no more, and replace the manifest.

    Without a `before`, everything that is there is replaced.
    """
    folder = prepared.folder
    (folder / UNFINISHED).touch()
    for name in ROWS:
        if before is None:
            shutil.rmtree(folder / name, ignore_errors=True)
        _move_leaves(staging / name, folder / name)
    if before is not None:
        _remove_outdated(prepared, before)
    write_manifest(prepared)
    (folder / UNFINISHED).unlink()


def _move_leaves(staged: Path, place: Path) -> None:
    """Each folder of files replaces the one of the same name."""
    if not staged.is_dir():
        return
    leaves = sorted({file.parent for file in staged.rglob("*.parquet")})
    for leaf in leaves:
        move(leaf, place / leaf.relative_to(staged))


def move(source: Path, target: Path) -> None:
    if target.exists():
        shutil.rmtree(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    source.rename(target)


def remove(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _remove_outdated(prepared: Prepared, before: Prepared) -> None:
    now = {series.name: series for series in prepared.series}
    for old in before.series:
        if old.name not in now:
            for name in ROWS:
                remove(prepared.folder / name / series_folder(old.name))
            continue
        for day in old.written.keys() - now[old.name].written.keys():
            part, date = day.split("/")
            remove(prepared.folder / "windows" / series_folder(old.name) / f"part={part}" / f"day={date}")
