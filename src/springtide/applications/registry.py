"""Every application that comes with Springtide, by its name.

To add one: write its class (see `shipped`) in a folder of its own, and put where it is into the table here. It is imported when
it is asked for: pyspark takes a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import ClassVar, get_origin, get_type_hints

from springtide.applications.shipped import ShippedApplication
from springtide.errors import SpringtideError, nearest
from springtide.values import converted

_HOME = {
    "stock-ticks": "stock_ticks.application:StockTicks",
    "taxi-routes": "taxi_routes.application:TaxiRoutes",
    "micro-benchmark": "micro_benchmark.application:MicroBenchmark",
    "stock-exchange": "stock_exchange.application:StockExchange",
    "tweets": "tweets.application:Tweets",
    "dns": "dns.application:Dns",
}


def names() -> list[str]:
    return list(_HOME)


def kind(name: str) -> type[ShippedApplication]:
    """The class of the application of that name."""
    if name not in _HOME:
        raise SpringtideError(f"there is no application {name!r}; {nearest(name, _HOME)}")
    module, _, owner = _HOME[name].partition(":")
    found: type[ShippedApplication] = getattr(import_module(f"springtide.applications.{module}"), owner)
    return found


def make(name: str, options: Mapping[str, object]) -> ShippedApplication:
    """The application with these options, whatever they were written as."""
    owner = kind(name)
    known = {option: hint for option, hint in get_type_hints(owner).items() if get_origin(hint) is not ClassVar}
    return owner(**converted(known, options, f"application {name!r}", "option"))
