"""Python values as the Scala values that Spark's own methods ask for, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from pyspark import SparkContext

# What py4j hands out: an object, a class or a package of the JVM, known by name only.
JavaObject = Any


def jvm_of(context: SparkContext) -> JavaObject:
    """The JVM's classes. The attribute is None only before the first context, which exists here."""
    return context._jvm


def singleton(context: SparkContext, name: str) -> JavaObject:
    """The Scala object of that full name, such as `scala.None`."""
    found = jvm_of(context)
    for part in f"{name}$".split("."):
        found = getattr(found, part)
    return getattr(found, "MODULE$")


def seq(context: SparkContext, items: Iterable[Any]) -> JavaObject:
    return jvm_of(context).PythonUtils.toSeq(list(items))


def scala_map(context: SparkContext, items: Mapping[Any, Any]) -> JavaObject:
    return jvm_of(context).PythonUtils.toScalaMap(dict(items))


def int_set(context: SparkContext, items: Iterable[int]) -> JavaObject:
    """A Scala set, which is also a function from an integer to whether it is in the set."""
    return seq(context, items).toSet()


@lru_cache(maxsize=4)
def second_of_two(context: SparkContext) -> JavaObject:
    """The serialisable Scala function (a, b) => b.

    Python cannot define a function that runs in executors' JVMs, but Scala's library can be made to build this one: a map
    without entries answers every `a` with its default, which is the identity, and uncurrying that gives (a, b) => b.
    """
    library = singleton(context, "scala.Function")
    identity = getattr(singleton(context, "scala.Predef"), "$conforms")()
    always_identity = singleton(context, "scala.collection.immutable.Map").empty().withDefaultValue(identity)
    # `uncurried` is overloaded by its result alone, which only reflection can tell apart.
    for method in library.getClass().getMethods():
        if method.getName() == "uncurried" and method.getReturnType().getName() == "scala.Function2":
            arguments = context._gateway.new_array(jvm_of(context).java.lang.Object, 1)  # type: ignore[union-attr]
            arguments[0] = always_identity
            return method.invoke(library, arguments)
    raise NotImplementedError("this Scala library has no Function.uncurried that makes a Function2")
