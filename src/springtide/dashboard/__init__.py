"""A run in the browser: a journal is followed as it grows, and what an operator asks for is written beside it.

The dashboard only reads the journal. It runs in a process of its own, so that whoever watches cannot slow the control loop.
"""
