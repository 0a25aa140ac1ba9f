"""Functions of the JVM made from methods that are there, for interfaces that take a lambda.

py4j can pass Python functions only as callbacks over its socket, one round trip a call. A method handle wrapped as a
`java.util.function.Function` stays inside the JVM.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from pyspark.sql import SparkSession

Java = Any
"""An object in the JVM, as py4j shows it."""


class JavaFunctions:
    """Makes them.

    Args:
        spark: The session whose JVM and classes are used.
    """

    def __init__(self, spark: SparkSession) -> None:
        # pyspark offers no public way into the JVM.
        self._gateway = cast("Java", spark.sparkContext._gateway)  # noqa: SLF001
        self._jvm = self._gateway.jvm

    def getter(self, owner: str, method: str) -> Java:
        """A `Function` that calls a public method without parameters on what it is given.

        Args:
            owner: The full name of the public class or interface that has the method.
            method: Its name.
        """
        invoke = self._jvm.java.lang.invoke
        none = self._gateway.new_array(self._jvm.java.lang.Class, 0)
        handle = invoke.MethodHandles.publicLookup().unreflect(self._class(owner).getMethod(method, none))
        return invoke.MethodHandleProxies.asInterfaceInstance(self._class("java.util.function.Function"), handle)

    def listed(self, values: Java, getters: Sequence[Java]) -> Java:
        """A Java list of what these getters, one after the other, give for each value of a Java collection."""
        return self._mapped(values, getters).collect(self._jvm.java.util.stream.Collectors.toList())

    def consumer(self, receiver: Java, owner: str, method: str, parameter: str) -> Java:
        """A `Consumer` that hands what it is given to a public method of one parameter.

        Args:
            receiver: Whose method.
            owner: The full name of the public class or interface that has the method.
            method: Its name.
            parameter: The full name of its parameter's class.
        """
        invoke = self._jvm.java.lang.invoke
        classes = self._gateway.new_array(self._jvm.java.lang.Class, 1)
        classes[0] = self._class(parameter)
        found = self._class(owner).getMethod(method, classes)
        handle = invoke.MethodHandles.publicLookup().unreflect(found).bindTo(receiver)
        return invoke.MethodHandleProxies.asInterfaceInstance(self._class("java.util.function.Consumer"), handle)

    def joined(self, values: Java, getters: Sequence[Java]) -> list[str]:
        """The texts that these getters, one after the other, give for each value of a Java collection; they cross to
        Python at once. No text holds a line break."""
        text: str = self._mapped(values, getters).collect(self._jvm.java.util.stream.Collectors.joining("\n"))
        return text.split("\n") if text else []

    @staticmethod
    def _mapped(values: Java, getters: Sequence[Java]) -> Java:
        stream = values.stream()
        for getter in getters:
            stream = stream.map(getter)
        return stream

    def _class(self, name: str) -> Java:
        # Classes of jars that Spark added are known to the thread's loader alone.
        return self._jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
