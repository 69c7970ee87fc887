"""A batch's files worked on by several processes, with their outcomes in order and no more of them than are waited for.

The promise: an interrupt loses nothing that was finished, and no process outlives the main one.

Pools are imported where one is made: they cost every start 10 ms, and one file or one job needs none.
"""

import contextlib
import gc
import itertools
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from compactctl import signals
from compactctl.errors import Bug
from compactctl.inputs import STANDARD_INPUT, Input
from compactctl.outcome import Outcome, failed

if TYPE_CHECKING:
    from concurrent.futures import Future

MOST_WAITING = 64
"""How many bundles are handed to the workers ahead of what was taken from them: no more outcomes than that pile up."""

BUNDLE_FILES, BUNDLE_BYTES = 16, 8_000_000
"""What a worker is given at once, at most: handing over costs as much as reading a small file."""

BUNDLES_A_WORKER = 8
"""How many bundles each worker has, at least, so that none is left with much when the others are done."""

STOPPING_S = 2.0
"""How long workers may go on after an interrupt that did not reach them themselves."""

Done = tuple[Input, list[Outcome] | None]
"""A file and what came of it; None for a file in a folder that is no session."""

Packed = bytes | list[list[Outcome] | None]
"""What a worker hands over: outcomes in msgpack, twenty times as fast as pickled, where their text allows it."""

One = Callable[[Input], list[Outcome] | None]
"""Works on one file; what fails in it is an outcome, too."""


def worked(files: Sequence[Input], one: One, jobs: int, threads: bool) -> Generator[Done]:
    """Yield each file with its outcomes, in the order given. An interrupt is raised after all that was finished.

    Several at once go to processes of their own, or to `threads` where they wait for others and share what they know.
    """
    if jobs <= 1 or len(files) <= 1 or any(item.path == STANDARD_INPUT for item in files):
        for item in files:
            yield item, one(item)
        return
    if threads:
        yield from _threaded(files, one, jobs)
        return
    from concurrent.futures import ProcessPoolExecutor

    gc.freeze()  # a worker that looked for garbage among what it was forked with would copy all of it
    heeded = signals.heeded()
    bundles = _bundles(files, jobs)
    with ProcessPoolExecutor(min(jobs, len(files)), initializer=_begin) as pool:
        waiting: deque[tuple[list[Input], Future[Packed]]] = deque()
        ready: deque[Done] = deque()
        try:
            while True:
                for bundle in itertools.islice(bundles, MOST_WAITING - len(waiting)):
                    waiting.append((bundle, pool.submit(_worked_off, one, bundle, heeded)))
                if not waiting:
                    return
                bundle, outcomes = waiting[0][0], _unpacked(*waiting[0])
                waiting.popleft()
                ready.extend(zip(bundle, outcomes, strict=False))
                while ready:
                    yield ready.popleft()
                if len(outcomes) < len(bundle):
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            _stop([future for _, future in waiting], STOPPING_S)
            yield from ready
            for bundle, future in waiting:
                if future.done() and not future.cancelled() and future.exception() is None:
                    yield from zip(bundle, _unpacked(bundle, future), strict=False)
            raise
        except BaseException:
            _stop([future for _, future in waiting], 0)
            raise


def _threaded(files: Sequence[Input], one: One, jobs: int) -> Generator[Done]:
    """Yield what threads make of the files. After an interrupt none of them starts another one."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(jobs, len(files))) as pool:
        futures = [pool.submit(one, item) for item in files]
        taken = 0
        try:
            for item, future in zip(files, futures, strict=True):
                outcomes = future.result()
                taken += 1
                yield item, outcomes
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            for item, future in list(zip(files, futures, strict=True))[taken:]:
                if future.done() and not future.cancelled() and future.exception() is None:
                    yield item, future.result()
            raise
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _bundles(files: Sequence[Input], jobs: int) -> Iterator[list[Input]]:
    """Yield the files in bundles: small ones together, but so few that every worker has some."""
    bundles = jobs * BUNDLES_A_WORKER
    most_files = max(1, min(BUNDLE_FILES, len(files) // bundles))
    most_bytes = min(BUNDLE_BYTES, sum(item.size_bytes for item in files) // bundles)
    bundle: list[Input] = []
    size_bytes = 0
    for item in files:
        if bundle and (len(bundle) >= most_files or size_bytes + item.size_bytes > most_bytes):
            yield bundle
            bundle, size_bytes = [], 0
        bundle.append(item)
        size_bytes += item.size_bytes
    yield bundle


def _worked_off(one: One, bundle: list[Input], heeded: tuple[int, ...]) -> Packed:
    """Work on some files in a worker. An interrupt ends it at once; what was done by then is handed over.

    `heeded` are the signals that interrupt: not those that the main process ignores, as one in a script's background.
    """
    outcomes: list[list[Outcome] | None] = []
    with contextlib.suppress(KeyboardInterrupt):
        try:
            signals.heed(heeded)
            for item in bundle:
                outcomes.append(one(item))  # noqa: PERF401 (an interrupt leaves those before it)
        finally:
            signals.ignore()
    signals.ignore()  # the interrupt may have come right before the line above
    try:
        return msgspec.msgpack.encode(outcomes)
    except (UnicodeEncodeError, OverflowError):  # the name of a file may be no Unicode, a number beyond 64 bits
        return outcomes


_UNPACK = msgspec.msgpack.Decoder(list[list[Outcome] | None])


def _unpacked(bundle: Sequence[Input], future: "Future[Packed]") -> list[list[Outcome] | None]:
    """Return the outcomes of a bundle; of fewer files than it has where an interrupt came."""
    from concurrent.futures.process import BrokenProcessPool

    try:
        packed = future.result()
    except BrokenProcessPool:
        return [[failed(item.path, Bug(f"{item.path}: its worker process was killed"))] for item in bundle]
    return _UNPACK.decode(packed) if isinstance(packed, bytes) else packed


def _stop(futures: "Sequence[Future[Packed]]", patience_s: float) -> None:
    """Start nothing more, and end what is running: at once where an interrupt has reached it, else after `patience_s`.

    A worker that was between two bundles has not heard of it, and is told again on its next one. The pool is left to
    its `with`, which waits for it: one that is shut down without waiting may break the interpreter's own exit.
    """
    import multiprocessing
    from concurrent.futures import wait

    running = [future for future in futures if not future.cancel() and not future.done()]
    while wait(running, patience_s).not_done:
        patience_s = STOPPING_S
        for process in multiprocessing.active_children():
            with contextlib.suppress(OSError, TypeError):
                os.kill(process.pid, signal.SIGINT)  # type: ignore[arg-type]


def finished(worked: Generator[Done]) -> Generator[Done]:
    """Yield what was finished when an interrupt came, whether it came to the generator or to who reads it."""
    try:
        yield worked.throw(KeyboardInterrupt())
        yield from worked
    except KeyboardInterrupt:
        return


def _begin() -> None:
    """Make a worker ready: it says nothing of an interrupt, which is the main process's to tell, and does not outlive
    that process. It may end in the middle of a write: a file is whole or not there."""
    signals.ignore()
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """End this worker at once when the main process is gone, killed with no chance to tell.

    A forked worker's sentinel stays open while a later sibling lives, and the last one has none, so all of them end.
    """
    import multiprocessing

    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
