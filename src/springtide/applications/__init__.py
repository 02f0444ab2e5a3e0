"""Applications that come with Springtide: those that the papers evaluate, written against the public API.

Each has a folder of its own, and is run with `springtide run NAME` (see `registry`). What they share: `shipped` is what an
application is, `results` where its answers are kept, `answers` how they are compared with the right ones.
"""
