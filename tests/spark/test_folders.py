"""Small files wherever Arrow can reach: whole or not there at all, and one line when a place cannot be reached."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from springtide.backends.spark import files
from springtide.backends.spark.files import Folder
from springtide.errors import SpringtideError


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    made = Folder(str(tmp_path / "state"))
    made.create()
    return made


class TestFiles:
    def test_what_was_written_last_is_read(self, folder: Folder, tmp_path: Path) -> None:
        folder.write_text("head", "first")
        folder.write_text("head", "zweite Fassung: größer, 漢字\n")

        assert folder.read_text("head") == "zweite Fassung: größer, 漢字\n"
        assert (tmp_path / "state" / "head").read_text(encoding="utf-8") == folder.read_text("head")

    def test_a_missing_file_is_none(self, folder: Folder) -> None:
        assert folder.read_text("head") is None
        assert folder.read_json("head.json") is None
        assert folder.read_text("no/such/folder/head") is None

    def test_an_empty_file_is_not_a_missing_one(self, folder: Folder) -> None:
        folder.write_text("head", "")

        assert folder.read_text("head") == ""

    def test_json_comes_back_as_it_was(self, folder: Folder) -> None:
        value = {"first": 1, "files": [["0-a/x", 3, 17]], "none": None, "half": 0.5}
        folder.write_json("head.json", value)

        assert folder.read_json("head.json") == value
        assert folder.read_text("head.json") == '{"first":1,"files":[["0-a/x",3,17]],"none":null,"half":0.5}'

    def test_deleting_takes_one_file_and_is_no_error_when_it_is_gone(self, folder: Folder) -> None:
        folder.write_text("one", "1")
        folder.write_text("two", "2")
        folder.delete("one")
        folder.delete("one")

        assert folder.names() == ["two"]

    def test_writing_leaves_nothing_else_behind(self, folder: Folder) -> None:
        for count in range(5):
            folder.write_text("head", str(count))

        assert folder.names() == ["head"]


class TestReplacing:
    def test_a_reader_in_the_middle_of_a_file_keeps_the_text_that_it_opened(self, folder: Folder, tmp_path: Path) -> None:
        folder.write_text("head", "old " * 1000)
        with (tmp_path / "state" / "head").open() as reader:
            begun = reader.read(8)
            folder.write_text("head", "new")

            assert begun + reader.read() == "old " * 1000
        assert folder.read_text("head") == "new"

    def test_a_write_that_is_cut_short_leaves_the_old_text(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        folder.write_text("head", "old")
        monkeypatch.setattr(files, "fs", power_cut_after(bytes_written=4))
        with pytest.raises(PowerCut):
            Folder(folder.uri).write_text("head", "new and longer")
        monkeypatch.undo()

        assert folder.read_text("head") == "old"
        (left,) = set(folder.names()) - {"head"}
        assert folder.read_text(left) == "new ", "the cut came in the middle of the text, not before it"

    def test_the_text_takes_its_place_in_one_move(self, folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
        """The whole text lies beside the old one before the old one is touched."""
        folder.write_text("head", "old")
        moves: list[tuple[str, str]] = []

        def look(written: str, path: str) -> None:
            moves.append((Path(written).read_text(), Path(path).read_text()))

        monkeypatch.setattr(files, "fs", filesystem_that_tells_of_moves(look))
        Folder(folder.uri).write_text("head", "new")

        assert moves == [("new", "old")]

    def test_a_store_without_moves_is_written_in_place(self) -> None:
        """Arrow's own file system in memory stands for an object store, which shows a file when it is closed."""
        store = Folder("mock:///store")
        store.create()
        store.write_text("head", "old")
        store.write_text("head", "new")

        assert store.read_text("head") == "new"
        assert store.names() == ["head"]
        store.delete("head")
        assert store.read_text("head") is None


class TestFolders:
    def test_names_are_those_of_files_and_folders_in_order(self, folder: Folder) -> None:
        for name in ("b", "a", "c/d"):
            folder.folder(name).create()
        folder.write_text("aa", "")

        assert folder.names() == ["a", "aa", "b", "c"]
        assert folder.folder("c").names() == ["d"]

    def test_a_folder_that_is_not_there_has_no_names(self, folder: Folder) -> None:
        assert folder.folder("nowhere").names() == []

    def test_making_one_twice_keeps_what_is_in_it(self, folder: Folder) -> None:
        folder.write_text("head", "kept")
        folder.create()

        assert folder.read_text("head") == "kept"

    def test_removing_takes_all_that_is_in_it_and_nothing_beside_it(self, folder: Folder) -> None:
        folder.folder("data/0-a/deep").create()
        folder.folder("data/0-a").write_text("x", "rows")
        folder.folder("data/0-ab").create()
        folder.folder("data/0-a").remove()
        folder.folder("data/0-a").remove()

        assert folder.folder("data").names() == ["0-ab"]

    def test_a_file_in_the_way_is_told_in_one_line(self, folder: Folder) -> None:
        folder.write_text("data", "not a folder")
        for place in (folder.folder("data"), folder.folder("data/0-a")):
            with pytest.raises(SpringtideError, match=r"^[^\n]*state/data[^\n]*: this folder cannot be made: [^\n]+$"):
                place.create()
        assert folder.read_text("data") == "not a folder"


class TestPlaces:
    def test_a_path_from_home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        Folder("~/runs").create()

        assert Folder("~/runs").uri == f"{tmp_path}/runs"
        assert (tmp_path / "runs").is_dir()

    def test_a_relative_path_stays_where_it_was_meant(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A folder goes to other processes, whose working directory is another one."""
        monkeypatch.chdir(tmp_path)
        meant = Folder("runs/../runs/today")
        meant.create()
        meant.write_text("head", "here")
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")

        assert Path(meant.uri).is_absolute()
        assert (tmp_path / "runs" / "today" / "head").read_text() == "here"
        assert Folder(meant.uri).read_text("head") == "here"

    def test_a_slash_at_the_end_makes_no_other_folder(self, tmp_path: Path) -> None:
        assert Folder(f"{tmp_path}/runs/") == Folder(f"{tmp_path}/runs")

    def test_a_file_uri(self, tmp_path: Path) -> None:
        by_uri = Folder(f"{tmp_path.as_uri()}/a%20run")
        by_uri.create()
        by_uri.folder("edge").create()
        by_uri.folder("edge").write_text("head", "here")

        assert (tmp_path / "a run" / "edge" / "head").read_text() == "here"

    @pytest.mark.parametrize(
        "name",
        ["a b", "a%20b", "a#b", "a?b=c", "größe", "漢字", "day=1", "12:30", "[x]", "{x}", "*", "a\\b", "'", '"', "_x", "a\nb"],
    )
    def test_odd_characters_in_a_path_are_taken_as_they_are(self, tmp_path: Path, name: str) -> None:
        odd = Folder(str(tmp_path / name)).folder("edge")
        odd.create()
        odd.write_text("head", name)

        assert (tmp_path / name / "edge" / "head").read_text() == name
        assert odd.read_text("head") == name
        assert odd.names() == ["head"]
        odd.remove()
        assert list((tmp_path / name).iterdir()) == []

    def test_a_folder_travels_to_tasks_after_it_was_used(self, folder: Folder) -> None:
        folder.write_text("head", "here")

        assert pickle.loads(pickle.dumps(folder)).read_text("head") == "here"

    @pytest.mark.parametrize("uri", ["nosuch://host/runs", "http://host/runs", "://runs", "file://host/runs"])
    def test_a_place_that_cannot_be_reached_is_told_in_one_line(self, uri: str) -> None:
        for ask in (Folder(uri).create, Folder(uri).names, Folder(uri).remove, lambda: Folder(uri).read_text("head")):
            with pytest.raises(SpringtideError, match=rf"^{uri}: no such place can be reached: [^\n]+$"):
                ask()

    def test_one_line_is_enough_however_much_arrow_says(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def from_uri(uri: str) -> None:
            raise OSError("Unable to load libjvm\ndlopen(/usr/lib/jvm/libjvm.so) failed\ndlopen(/usr/lib64/libjvm.so) failed")

        monkeypatch.setattr(files, "fs", SimpleNamespace(FileSystem=SimpleNamespace(from_uri=from_uri)))
        with pytest.raises(SpringtideError) as refused:
            Folder("hdfs://nowhere/runs").create()
        assert "Unable to load libjvm" in str(refused.value)
        assert "\n" not in str(refused.value)

    def test_options_of_a_uri_stay_behind_its_path(self, tmp_path: Path) -> None:
        """As in s3://bucket/runs?endpoint_override=minio:9000, which names a store of one's own."""
        root = Folder(f"{tmp_path.as_uri()}/runs?option=1")
        _, path = root.folder("edge").path("head.json")

        assert path == f"{tmp_path}/runs/edge/head.json"

    def test_a_uri_as_hadoop_spells_it(self, tmp_path: Path) -> None:
        _, path = Folder(f"file:{tmp_path}/runs").path("head.json")

        assert path == f"{tmp_path}/runs/head.json"

    def test_a_home_that_nobody_has_is_told_in_one_line(self) -> None:
        with pytest.raises(SpringtideError, match=r"~nobody-of-this-name"):
            Folder("~nobody-of-this-name/runs").create()


# --- file systems that go wrong, or tell what they do ---------------------------------------------------------------------


class PowerCut(Exception):
    """The machine went down."""


class _LocalFiles:
    """The local file system, as far as `write_text` uses it, with a place to interfere."""

    def __init__(self) -> None:
        self._real = fs.LocalFileSystem()

    def open_output_stream(self, path: str) -> Any:
        return self._real.open_output_stream(path)

    def move(self, written: str, path: str) -> None:
        self._real.move(written, path)


def _as_module(local: _LocalFiles) -> SimpleNamespace:
    located = SimpleNamespace(from_uri=lambda uri: (local, uri))
    return SimpleNamespace(FileSystem=located, LocalFileSystem=_LocalFiles)


def power_cut_after(bytes_written: int) -> SimpleNamespace:
    class Cut(_LocalFiles):
        def open_output_stream(self, path: str) -> Any:
            return _CutStream(super().open_output_stream(path), bytes_written)

    return _as_module(Cut())


class _CutStream:
    def __init__(self, stream: pa.NativeFile, left: int) -> None:
        self._stream, self._left = stream, left

    def __enter__(self) -> _CutStream:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()

    def write(self, data: bytes) -> None:
        self._stream.write(data[: self._left])
        raise PowerCut


def filesystem_that_tells_of_moves(look: Any) -> SimpleNamespace:
    class Telling(_LocalFiles):
        def move(self, written: str, path: str) -> None:
            look(written, path)
            super().move(written, path)

    return _as_module(Telling())
