"""Continuous queries over the ticks of a stock exchange: prices of each company within windows, for many sectors at once.

The workload of Heinze et al. 2014, section V. All queries are served by two operators: one that selects, one that counts.
"""
