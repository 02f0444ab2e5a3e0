"""The micro-benchmark of Elasticutor: a generator of skewed keys, and a calculator that takes its time and keeps state.

How much a tuple costs, how large it and the state are, and how often the frequent keys change are options; counts and
checksums of every key are exact.
"""
