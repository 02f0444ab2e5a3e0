"""A stock exchange, as Elasticutor evaluates it: limit orders are matched per stock, and statistics and events follow.

The transactor reproduces a recorded day of the Shanghai Stock Exchange trade by trade, and as many made stocks beside it
as are asked for; everything is counted in whole cents and shares, so every answer is exact.
"""
