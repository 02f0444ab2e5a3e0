"""The application that a user names: a Python file of theirs, or one that comes with Springtide."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path

from springtide.applications import registry
from springtide.applications.runs import RunFolder
from springtide.applications.shipped import ShippedApplication
from springtide.backends.spark.application import Application
from springtide.cli.options import parse_assignments
from springtide.errors import SpringtideError, nearest


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Chosen:
    """An application, and where its state is kept; `shipped` if it comes with Springtide, and knows the right answer.

    `data` says which rows it reads then.
    """

    application: Application
    folder: str
    shipped: ShippedApplication | None = None
    data: str = ""


def chosen(name: str, options: list[str], folder: str | None) -> Chosen:
    """A file, if there is one or the name looks like one; else an application by its name, with its options."""
    path = Path(name)
    if path.suffix == ".py" or path.exists():
        if options:
            raise SpringtideError(f"--option {options[0]}: {path} is a file of your own, and has its options in its code")
        application = load_application(path)
        return Chosen(application=application, folder=folder or f"springtide-{application.name}")
    if name not in registry.names():
        raise SpringtideError(
            f"{name}: there is no such file, nor an application of that name; {nearest(name, registry.names())}"
        )
    shipped = registry.make(name, parse_assignments(options, "--option"))
    data = shipped.data()  # what cannot be read is refused before there is a folder
    own = Path(folder or f"springtide-{name}")
    RunFolder(own).begin(shipped)
    return Chosen(application=shipped.application(own), folder=str(own), shipped=shipped, data=data)


def load_application(path: Path) -> Application:
    """The application that a Python file makes: in `app`, or the only one there is."""
    if not path.is_file():
        raise SpringtideError(f"{path}: there is no such file")
    spec = importlib.util.spec_from_file_location(path.stem.replace("-", "_"), path)
    if spec is None or spec.loader is None:
        raise SpringtideError(f"{path}: this is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.absolute()))
    try:
        spec.loader.exec_module(module)
    except SpringtideError:
        raise
    except Exception as error:
        raise SpringtideError(f"{path}: it cannot be loaded: {type(error).__name__}: {error}") from error
    from pyspark.cloudpickle import register_pickle_by_value  # the file is not there for executors to import

    register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    found = [value for value in vars(module).values() if isinstance(value, Application)]
    named = getattr(module, "app", None)
    if isinstance(named, Application):
        return named
    if len(found) != 1:
        raise SpringtideError(f"{path}: it makes {len(found)} applications: put the one to run into the variable `app`")
    return found[0]
