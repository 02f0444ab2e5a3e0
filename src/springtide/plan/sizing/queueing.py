"""One queue with several servers, M/M/k: how long rows stay in it, on average and at a percentile.

H. C. Tijms, "Stochastic Modelling and Analysis: A Computational Approach", Wiley, 1986 (the reference [27] of Elasticutor).
Rows come as a Poisson process, service times are exponential, and rows are served in the order they came.

| symbol | argument | unit |
|---|---|---|
| lambda | `arrivals_per_s` | rows/s |
| mu | `service_per_s`: what one server can do | rows/s |
| k | `servers` | |
| a = lambda / mu | `offered`: the servers that are busy on average | |
| B(k, a) | `erlang_b`: a row is lost where nothing can wait | |
| C(k, a) | `erlang_c`: a row has to wait | |

A queue that is offered as much as its servers can do, or more, grows for ever: times are infinite then. Nothing here
overflows, whatever the number of servers: C is derived from B, and B from its recursion, which adds positive numbers only
(no factorials, no powers of a). The recursion takes one step per server, some 0.1 us, so that sizing a whole application
takes time in proportion to its cores.
"""

from __future__ import annotations

import math

_PRECISION = 1e-12  # of a percentile, relative


def erlang_b(offered: float, servers: int) -> float:
    """The probability that all servers are busy, where no row waits (Erlang's loss formula).

    >>> erlang_b(2.0, 2)
    0.4
    """
    blocking = 1.0
    for server in range(1, servers + 1):
        carried = offered * blocking  # as in `next_erlang_b`, without the cost of calling it
        blocking = carried / (server + carried)
    return blocking


def next_erlang_b(blocking: float, offered: float, servers: int) -> float:
    """B(k, a) from B(k - 1, a), where k is `servers`."""
    carried = offered * blocking
    return carried / (servers + carried)


def erlang_c(offered: float, servers: int) -> float:
    """The probability that a row has to wait; 1 if the servers cannot keep up.

    >>> round(erlang_c(1.0, 2), 6), erlang_c(0.8, 1), erlang_c(3.0, 2)
    (0.333333, 0.8, 1.0)
    """
    return waiting(erlang_b(offered, servers), offered, servers)


def waiting(blocking: float, offered: float, servers: int) -> float:
    """C(k, a) from B(k, a)."""
    if offered >= servers:
        return 1.0
    return servers * blocking / (servers - offered * (1.0 - blocking))


def mean_sojourn_s(arrivals_per_s: float, service_per_s: float, servers: int) -> float:
    """E[T]: how long a row stays on average, waiting and being served.

    >>> mean_sojourn_s(0.5, 1.0, 1), mean_sojourn_s(3.0, 1.0, 3)
    (2.0, inf)
    """
    offered = arrivals_per_s / service_per_s
    return sojourn_given_s(erlang_b(offered, servers), offered, service_per_s, servers)


def sojourn_given_s(blocking: float, offered: float, service_per_s: float, servers: int) -> float:
    """E[T] where B(k, a) is known already."""
    if offered >= servers:
        return math.inf
    return (waiting(blocking, offered, servers) / (servers - offered) + 1.0) / service_per_s


def sojourn_tail(time_s: float, arrivals_per_s: float, service_per_s: float, servers: int) -> float:
    """P(T > t): the share of rows that stay longer.

    >>> round(sojourn_tail(2.0, 0.5, 1.0, 1), 6)  # exp(-(mu - lambda) t) with one server
    0.367879
    """
    offered = arrivals_per_s / service_per_s
    return _tail(time_s * service_per_s, offered, servers, erlang_c(offered, servers))


def sojourn_percentile_s(arrivals_per_s: float, service_per_s: float, servers: int, percentile: float) -> float:
    """The time within which the share `percentile` of the rows leave (0.9: nine of ten), by bisection of P(T > t).

    >>> round(sojourn_percentile_s(0.5, 1.0, 1, 0.9), 6)  # ln(10) times the mean of 2 s with one server
    4.60517
    """
    offered = arrivals_per_s / service_per_s
    if offered >= servers:
        return math.inf
    delayed = erlang_c(offered, servers)
    low, high = 0.0, 1.0 / (servers - offered) + 1.0
    while _tail(high, offered, servers, delayed) > 1.0 - percentile:
        low, high = high, 2.0 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2.0
        if _tail(middle, offered, servers, delayed) > 1.0 - percentile:
            low = middle
        else:
            high = middle
    return high / service_per_s


def _tail(time: float, offered: float, servers: int, delayed: float) -> float:
    """P(T > t) with time in mean service times.

    Service ends at the rate 1, and the wait of those that wait at the rate k - a. T is the sum of both:
    P(T > t) = e^-t + C (e^-t - e^-(k - a)t) / (k - a - 1), and e^-t + C t e^-t where the two rates are one.
    """
    if offered >= servers:
        return 1.0
    excess = servers - offered - 1.0
    slower = math.exp(-min(1.0, servers - offered) * time)
    # The difference of the two exponentials, over the difference of their rates, without cancellation where these are close.
    apart = -math.expm1(-abs(excess) * time) / abs(excess) if excess else time
    return math.exp(-time) + delayed * slower * apart
