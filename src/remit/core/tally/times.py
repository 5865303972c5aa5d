"""Durations without a list of them: how many, how long together, and about how long each was."""

from dataclasses import dataclass, field
from typing import Final, cast

from remit.core.values import Json

_BITS: Final = 5  # of a duration that are kept below its highest: a bucket is 1/32 of its durations wide
_EXACT: Final = 1 << (_BITS + 1)  # durations below this have a bucket each


def bucket_of(duration: int) -> int:
    """Give the number of the bucket that a duration is counted in; whole numbers only, the same on every machine."""
    if duration < _EXACT:
        return max(0, duration)
    shift = duration.bit_length() - _BITS - 1
    return (shift << _BITS) + (duration >> shift)


def longest_in(bucket: int) -> int:
    """Give the longest duration that is counted in a bucket."""
    if bucket < _EXACT:
        return bucket
    shift = (bucket >> _BITS) - 1
    return ((bucket - (shift << _BITS) + 1) << shift) - 1


@dataclass(slots=True)
class Times:
    """Some durations in microseconds, as a histogram.

    Their number, sum, shortest and longest are exact; a percentile is at most a thirty-second part too long.
    """

    count: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0
    buckets: dict[int, int] = field(default_factory=dict[int, int])

    @property
    def mean(self) -> int:
        return self.total // self.count if self.count else 0

    def percentile(self, share: int) -> int:
        """Find the least duration that so many in a hundred do not exceed, as closely as the buckets tell."""
        rank = -(-self.count * share // 100)
        for bucket in sorted(self.buckets):
            rank -= self.buckets[bucket]
            if rank <= 0:
                return min(max(longest_in(bucket), self.shortest), self.longest)
        return 0

    def add(self, duration: int) -> None:
        """Count one duration. It is negative when a clock was set back in between."""
        bucket = bucket_of(duration)
        self.shortest = min(self.shortest, duration) if self.count else duration
        self.longest = max(self.longest, duration) if self.count else duration
        self.count += 1
        self.total += duration
        self.buckets[bucket] = self.buckets.get(bucket, 0) + 1

    def merge(self, other: "Times") -> None:
        """Count what another has counted, too."""
        if not other.count:
            return
        self.shortest = min(self.shortest, other.shortest) if self.count else other.shortest
        self.longest = max(self.longest, other.longest) if self.count else other.longest
        self.count += other.count
        self.total += other.total
        for bucket, number in other.buckets.items():
            self.buckets[bucket] = self.buckets.get(bucket, 0) + number

    def data(self) -> list[Json]:
        """Write it as JSON: the exact figures, then each bucket with its number."""
        pairs = [part for pair in sorted(self.buckets.items()) for part in pair]
        return [self.count, self.total, self.shortest, self.longest, *pairs]


def times_from(data: Json) -> Times:
    """Read what `Times.data` wrote; nothing stands for no durations."""
    if not data:
        return Times()
    count, total, shortest, longest, *pairs = cast("list[int]", data)
    return Times(count, total, shortest, longest, dict(zip(pairs[::2], pairs[1::2], strict=True)))
