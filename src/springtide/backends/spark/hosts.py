"""Hosts that a policy knows by name, and the executors that they are at the moment.

A host keeps its name when its executor dies: Spark starts another one, and the host is that one then. A host that is released
gets no more tasks at once, and is let go when no query needs what it has shuffled or holds.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from py4j.protocol import Py4JError
from pyspark import InheritableThread, SparkContext
from pyspark.errors import PySparkException

from springtide.backends.spark.jvm.executors import Executor, cordon, executor_ids, executors, kill, request_total
from springtide.errors import InvalidValue, nearest
from springtide.model.observation import HostState

_LOOK_EVERY_S = 0.1


@dataclass(slots=True)
class Host:
    """One host. It is paid for from the moment its executor is there until it is let go."""

    name: str
    executor: Executor | None = None
    releasing: bool = False
    warm: bool = False
    awaited: bool = True  # until it has been there once
    paid_from_s: float | None = None

    @property
    def state(self) -> HostState:
        if self.releasing:
            return HostState.RELEASING
        return HostState.RUNNING if self.executor is not None and self.warm else HostState.STARTING


class Fleet:
    """All hosts, kept in step with the executors that Spark has. Safe to use from several threads.

    `prepare` gets a new executor ready, in a thread of its own; the host runs when it is done. Executors that share the cores
    of this machine are started on half of them at a time: all at once would take longer for each, and keep the batches that run
    from the cores.
    """

    def __init__(
        self, context: SparkContext, clock: Callable[[], float], prepare: Callable[[Executor], None], *, adopting: bool = False
    ) -> None:
        self._context = context
        self._prepare = prepare
        self._adopting = adopting  # take executors as they come and go, and ask for none
        local = str(context.master).startswith("local")
        self._started_at_once = max(1, (os.cpu_count() or 1) // 2) if local else None
        self._clock = clock
        self._lock = threading.RLock()
        self._hosts: dict[str, Host] = {}
        self._owner: dict[str, str] = {}  # executor id -> host name, for those that are gone too
        self._notes: list[str] = []
        self._billed_core_s = 0.0
        self._losses = 0
        self._watcher: threading.Thread | None = None
        self._ended = threading.Event()

    # --- what there is ------------------------------------------------------------------------------------------

    def hosts(self) -> list[Host]:
        with self._lock:
            return list(self._hosts.values())

    def names(self) -> tuple[str, ...]:
        """Hosts that are there or on their way, in the order they were asked for."""
        with self._lock:
            return tuple(h.name for h in self._hosts.values() if not h.releasing)

    def running(self) -> dict[str, Executor]:
        with self._lock:
            if self._adopting:
                return {}  # nothing is placed on executors that Spark may take away
            return {h.name: h.executor for h in self._hosts.values() if h.executor is not None and h.state is HostState.RUNNING}

    def host_of(self, executor: str) -> str | None:
        with self._lock:
            return self._owner.get(executor)

    def awaited(self) -> set[str]:
        """Hosts that have been asked for and have not been there yet."""
        with self._lock:
            return {h.name for h in self._hosts.values() if h.awaited and not h.releasing}

    def wanting(self) -> bool:
        """Whether a host waits for its executor."""
        with self._lock:
            return self._wants()

    def _wants(self) -> bool:
        return any(h.executor is None and not h.releasing for h in self._hosts.values())

    # --- changes ------------------------------------------------------------------------------------------------

    def begin(self, names: Iterable[str]) -> None:
        """Take over: these hosts from now on, each one of the executors that are there; the other executors go."""
        with self._lock:
            self._hosts = {} if self._adopting else {name: Host(name) for name in names}
            present = list(executors(self._context))
            surplus = present[len(self._hosts) :]
            if surplus and not self._adopting:
                kill(self._context, surplus)
                self._owner.update(dict.fromkeys(surplus, ""))
            if not self._adopting:
                request_total(self._context, len(self._hosts))
            self._assign(self._prepare_at_work)

    def add(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                if name in self._hosts:
                    raise InvalidValue(f"host {name!r} is there already")
                self._hosts[name] = Host(name)
            self._request()
            self._watch()

    def _request(self) -> None:
        """Ask for the executors of all hosts, or of as many as may start at once."""
        total = len(self._hosts)
        if self._started_at_once is not None:
            total = min(total, sum(host.warm for host in self._hosts.values()) + self._started_at_once)
        request_total(self._context, total)

    def release(self, names: Iterable[str]) -> None:
        """Give hosts no more tasks; `let_go` ends them."""
        with self._lock:
            for name in names:
                if name not in self._hosts:
                    raise InvalidValue(f"there is no host {name!r} to release; {nearest(name, self._hosts)}")
                host = self._hosts[name]
                host.releasing = True
                if host.executor is not None:
                    cordon(self._context, host.executor.id)

    def let_go(self, name: str) -> None:
        """End a released host's executor."""
        with self._lock:
            host = self._hosts.pop(name)
            self._bill(host)
            if host.executor is not None:
                kill(self._context, [host.executor.id])
            else:
                self._request()

    def refresh(self) -> None:
        """Compare with what Spark has: executors that died, and new ones for the hosts that wait."""
        with self._lock:
            present = executors(self._context)
            for host in self._hosts.values():
                if host.executor is not None and host.executor.id not in present:
                    self._notes.append(f"{host.name}: executor {host.executor.id} was lost")
                    self._losses += 1
                    self._bill(host)
                    host.executor, host.warm = None, False
            self._assign(self._prepare_at_work if self._adopting else self._prepare_apart, present)
            self._watch()

    def _watch(self) -> None:
        """Look for executors in a thread of its own while a host waits for one, so that each is got ready as soon as it is
        there: a batch that begins before gives tasks to it."""
        if (
            self._adopting
            or self._ended.is_set()
            or not self._wants()
            or (self._watcher is not None and self._watcher.is_alive())
        ):
            return
        self._watcher = InheritableThread(target=self._look, name="executors", daemon=True)
        self._watcher.start()

    def _look(self) -> None:
        with suppress(Py4JError, AttributeError):  # the session has been stopped
            while self.wanting() and not self._ended.wait(_LOOK_EVERY_S):
                if executor_ids(self._context) - self._owner.keys():
                    self.refresh()

    def end(self) -> None:
        """Look for executors no more; those that are there stay."""
        self._ended.set()

    def _assign(self, prepare: Callable[[Host], None], present: Mapping[str, Executor] | None = None) -> None:
        """Give the hosts that wait the executors that are new."""
        if present is None:
            present = executors(self._context)
        unused = [e for e in present.values() if e.id not in self._owner]
        if self._adopting:
            self._hosts = {name: host for name, host in self._hosts.items() if host.executor is not None}
            self._hosts |= {f"executor-{e.id}": Host(f"executor-{e.id}") for e in unused}
        waiting = [h for h in self._hosts.values() if h.executor is None and not h.releasing]
        for host, executor in zip(waiting, sorted(unused, key=lambda e: int(e.id) if e.id.isdigit() else 0), strict=False):
            host.executor = executor
            host.paid_from_s = self._clock()
            self._owner[executor.id] = host.name
            prepare(host)

    def _prepare_at_work(self, host: Host) -> None:
        """The first executors run at once, because nothing else does: they get ready while the queries start."""
        host.warm, host.awaited = True, False
        if not self._adopting:
            self._prepare_apart(host)

    def _prepare_apart(self, host: Host) -> None:
        executor = host.executor
        assert executor is not None

        def prepare() -> None:
            with suppress(PySparkException, Py4JError):  # it may be gone before it is ready
                self._prepare(executor)
            with self._lock:
                host.warm = host.executor is executor
                host.awaited = host.awaited and not host.warm
            with suppress(Py4JError, AttributeError), self._lock:  # the session has been stopped
                if not self._ended.is_set():
                    self._request()

        InheritableThread(target=prepare, name=f"warm-up-{host.name}", daemon=True).start()

    # --- accounts -----------------------------------------------------------------------------------------------

    def _bill(self, host: Host) -> None:
        if host.executor is not None and host.paid_from_s is not None:
            now_s = self._clock()
            self._billed_core_s += (now_s - host.paid_from_s) * host.executor.cores
            host.paid_from_s = now_s

    def take_core_s(self) -> float:
        """Core-seconds that were paid for since the last call."""
        with self._lock:
            for host in self._hosts.values():
                self._bill(host)
            billed, self._billed_core_s = self._billed_core_s, 0.0
            return billed

    def take_notes(self) -> tuple[list[str], int]:
        """What happened to hosts since the last call, and how many were lost."""
        with self._lock:
            notes, losses = self._notes, self._losses
            self._notes, self._losses = [], 0
            return notes, losses
