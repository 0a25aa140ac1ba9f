"""Functions inside the JVM, made from methods that are there, for methods of Spark that take one.

py4j passes a Python function only as a callback over its socket, a round trip for each call. A method handle that
Java shows as an object of Scala's function stays in the JVM.
"""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

from pyspark.sql import SparkSession

JavaObject: TypeAlias = Any
"""An object in the JVM, as py4j shows it."""

_OBJECT, _CLASS, _FUNCTION = "java.lang.Object", "java.lang.Class", "scala.Function1"
_HANDLES, _PROXIES = "java.lang.invoke.MethodHandles", "java.lang.invoke.MethodHandleProxies"


_KNOWN: MutableMapping[SparkSession, JavaFunctions] = WeakKeyDictionary()


def java_functions(spark: SparkSession) -> JavaFunctions:
    """Those of a session, made once."""
    return _KNOWN.setdefault(spark, JavaFunctions(spark))


class JavaFunctions:
    """Makes them.

    Args:
        spark: A session, whose JVM is used.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._jvm, self._gateway = spark._jvm, spark.sparkContext._gateway  # noqa: SLF001 - PySpark has no public way
        self._found: dict[str, JavaObject] = {}
        self._classes: dict[str, JavaObject] = {}

    def java(self, name: str) -> JavaObject:
        """A class of the JVM by its full name, as py4j calls its constructors and static methods."""
        if name not in self._found:  # to look one up takes calls
            self._found[name] = getattr(self._jvm, name)
        return self._found[name]

    def method(self, owner: str, name: str, *parameters: str) -> JavaObject:
        """A handle of a public method.

        Args:
            owner: The full name of the public class or interface that has it.
            name: Its name.
            parameters: The full names of its parameters' classes.
        """
        classes = self._array(_CLASS, [self._class(each) for each in parameters])
        return self.java(_HANDLES).publicLookup().unreflect(self._class(owner).getMethod(name, classes))

    def shown_as(self, interface: str, handle: JavaObject) -> JavaObject:
        """An object of an interface with one method, which a method handle is."""
        return self.java(_PROXIES).asInterfaceInstance(self._class(interface), handle)

    @cached_property
    def without_metadata(self) -> JavaObject:
        """From an attribute of a plan to the same attribute without metadata."""
        metadata = "org.apache.spark.sql.types.Metadata"
        method = self.method("org.apache.spark.sql.catalyst.expressions.Attribute", "withMetadata", metadata)
        given = self._array(_OBJECT, [self.java(metadata).empty()])
        return self.shown_as(_FUNCTION, self.java(_HANDLES).insertArguments(method, 1, given))

    def nodes(self, tree: JavaObject) -> JavaObject:
        """The nodes of a tree of Spark's in pre-order, as a list of Java's."""
        found = self.java("java.util.ArrayList")()
        tree.foreach(self.shown_as(_FUNCTION, self._add.bindTo(found)))
        return found

    def replacing(self, others: JavaObject) -> JavaObject:
        """The partial function that a map of Java's is: defined for its keys."""
        found = self.java(_HANDLES).filterReturnValue(self._get.bindTo(others), self._optional)
        return self.java("scala.Function").unlift(self.shown_as(_FUNCTION, found))

    @cached_property
    def _add(self) -> JavaObject:
        return self.method("java.util.List", "add", _OBJECT)

    @cached_property
    def _get(self) -> JavaObject:
        return self.method("java.util.Map", "get", _OBJECT)

    @cached_property
    def _optional(self) -> JavaObject:
        return self.method("scala.Option", "apply", _OBJECT)

    def _array(self, of: str, values: Sequence[JavaObject]) -> JavaObject:
        array = self._gateway.new_array(self.java(of), len(values))  # type: ignore[union-attr]
        for place, value in enumerate(values):
            array[place] = value
        return array

    def _class(self, name: str) -> JavaObject:
        if name not in self._classes:
            # Classes of jars that Spark added are known to the thread's loader alone.
            loader = self.java("java.lang.Thread").currentThread().getContextClassLoader()
            self._classes[name] = loader.loadClass(name)
        return self._classes[name]
