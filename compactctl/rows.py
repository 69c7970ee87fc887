"""Many small values, one behind the other, in little room: all but the newest are held encoded and compressed."""

import zlib
from collections.abc import Collection, Iterator
from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")

BLOCK = 1024
"""So many values are encoded at once."""

_FAST = 1


class Rows(Collection[T], Generic[T]):
    """Values of one kind in the order in which they came. Each walk makes them anew."""

    def __init__(self, kind: type[T]) -> None:
        self._decoder = msgspec.msgpack.Decoder(list[kind])  # type: ignore[valid-type]
        self._blocks: list[bytes] = []
        self._newest: list[T] = []
        self._packed = 0

    def append(self, value: T) -> None:
        """Put a value behind the others."""
        if len(self._newest) == BLOCK:
            self._pack()
        self._newest.append(value)

    def close(self) -> None:
        """Hold none of the values themselves, where there are many: each would keep the memory around it from use."""
        if self._packed:
            self._pack()

    def _pack(self) -> None:
        self._blocks.append(zlib.compress(msgspec.msgpack.encode(self._newest), _FAST))
        self._packed += len(self._newest)
        self._newest = []

    def __iter__(self) -> Iterator[T]:
        for block in self._blocks:
            yield from self._decoder.decode(zlib.decompress(block))
        yield from self._newest

    def __len__(self) -> int:
        return self._packed + len(self._newest)

    def __eq__(self, other: object) -> bool:
        """Return whether the other one has the same values in the same order, packed or not."""
        if not isinstance(other, Collection):
            return NotImplemented
        return len(self) == len(other) and all(mine == theirs for mine, theirs in zip(self, other, strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __contains__(self, value: object) -> bool:
        return any(each == value for each in self)
