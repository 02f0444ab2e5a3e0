"""Springtide makes Spark Structured Streaming elastic."""

__version__ = "0.1.0"
