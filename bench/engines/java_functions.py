"""Functions of the JVM made from methods that are there, for interfaces of Java that take a lambda."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from icebench.engine.spark.java_functions import JavaObject as Java
from icebench.engine.spark.java_functions import java_functions

_COLLECTORS = "java.util.stream.Collectors"


class JavaFunctions:
    """Makes them.

    Args:
        spark: The session whose JVM and classes are used.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._made = java_functions(spark)

    def getter(self, owner: str, method: str) -> Java:
        """A `Function` that calls a public method without parameters on what it is given.

        Args:
            owner: The full name of the public class or interface that has the method.
            method: Its name.
        """
        return self._made.shown_as("java.util.function.Function", self._made.method(owner, method))

    def listed(self, values: Java, getters: Sequence[Java]) -> Java:
        """A Java list of what these getters, one after the other, give for each value of a Java collection."""
        return self._mapped(values, getters).collect(self._made.java(_COLLECTORS).toList())

    def consumer(self, receiver: Java, owner: str, method: str, parameter: str) -> Java:
        """A `Consumer` that hands what it is given to a public method of one parameter.

        Args:
            receiver: Whose method.
            owner: The full name of the public class or interface that has the method.
            method: Its name.
            parameter: The full name of its parameter's class.
        """
        handle = self._made.method(owner, method, parameter).bindTo(receiver)
        return self._made.shown_as("java.util.function.Consumer", handle)

    def joined(self, values: Java, getters: Sequence[Java]) -> list[str]:
        """The texts that these getters, one after the other, give for each value of a Java collection; they cross to
        Python at once. No text holds a line break."""
        text: str = self._mapped(values, getters).collect(self._made.java(_COLLECTORS).joining("\n"))
        return text.split("\n") if text else []

    @staticmethod
    def _mapped(values: Java, getters: Sequence[Java]) -> Java:
        stream = values.stream()
        for getter in getters:
            stream = stream.map(getter)
        return stream
