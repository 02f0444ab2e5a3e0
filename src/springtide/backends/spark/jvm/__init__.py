"""The only modules that reach into Spark's JVM through py4j: what Spark has no Python API for.

Rules: one module per subject, each function small enough to be checked against a new Spark version by hand. Nothing outside
this package touches `_jdf`, `_jsc` or `_jvm`.
"""
