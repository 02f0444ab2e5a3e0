"""Whether this machine, and this version of Spark, can do what Springtide needs: one finding a check, each with what to do.

Rules: a check looks at facts that it is given, so that a test can give it others; only `examination` asks the machine, and only
`internals` starts Spark. Nothing is changed: what a check writes it takes away again.
"""
