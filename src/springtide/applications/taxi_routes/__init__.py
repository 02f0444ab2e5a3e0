"""The most frequent routes of New York's taxis within the last 30 minutes: query 1 of the DEBS 2015 grand challenge.

The application of EDF, Cardellini et al. 2017, section 4: parse, filter, route, count in a window, rank in parts, rank in all.
"""
