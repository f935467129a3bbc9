"""The order libstdc++'s sort and partial_sort leave equal elements in, written out in Python.

`less(a, b)` is the comparison; lists are sorted in place. The standard leaves the order of equals open; libstdc++'s is
that of its heap (partial_sort) and its introsort: quicksort by the median of three, a heap when it goes too deep, one
insertion sort at the end over runs of at most 16.
"""

from collections.abc import Callable
from typing import Any

Less = Callable[[Any, Any], bool]
RUN = 16


def partial_sort(a: list[Any], middle: int, less: Less, first: int = 0, last: int | None = None) -> None:
    """The `middle - first` least of a[first:last] come first, in order."""
    last = len(a) if last is None else last
    heap = a[first:middle]
    n = len(heap)
    for parent in range((n - 2) // 2, -1, -1):
        _sift(heap, parent, n, heap[parent], less)
    for i in range(middle, last) if n else ():
        if less(a[i], heap[0]):
            value, a[i] = a[i], heap[0]
            _sift(heap, 0, n, value, less)
    for end in range(n - 1, 0, -1):
        value, heap[end] = heap[end], heap[0]
        _sift(heap, 0, end, value, less)
    a[first:middle] = heap


def _sift(heap: list[Any], hole: int, n: int, value: Any, less: Less) -> None:
    """Lets the hole sink to a leaf, then `value` rise from there."""
    top = hole
    child = hole
    while child < (n - 1) // 2:
        child = 2 * (child + 1)
        if less(heap[child], heap[child - 1]):
            child -= 1
        heap[hole] = heap[child]
        hole = child
    if n % 2 == 0 and child == (n - 2) // 2:
        child = 2 * (child + 1) - 1
        heap[hole] = heap[child]
        hole = child
    while hole > top and less(heap[(hole - 1) // 2], value):
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = value


def sort(a: list[Any], less: Less) -> None:
    if not a:
        return
    _quicksort(a, 0, len(a), 2 * (len(a).bit_length() - 1), less)
    for i in range(1, len(a)):
        value = a[i]
        if i < RUN and less(value, a[0]):
            at = 0
        else:
            at = i
            while less(value, a[at - 1]):
                at -= 1
        a[at + 1 : i + 1] = a[at:i]
        a[at] = value


def _quicksort(a: list[Any], first: int, last: int, depth: int, less: Less) -> None:
    while last - first > RUN:
        if depth == 0:
            partial_sort(a, last, less, first, last)
            return
        depth -= 1
        cut = _partition(a, first, last, less)
        _quicksort(a, cut, last, depth, less)
        last = cut


def _partition(a: list[Any], first: int, last: int, less: Less) -> int:
    low, mid, high = first + 1, first + (last - first) // 2, last - 1
    if less(a[low], a[mid]):
        median = mid if less(a[mid], a[high]) else high if less(a[low], a[high]) else low
    else:
        median = low if less(a[low], a[high]) else high if less(a[mid], a[high]) else mid
    a[first], a[median] = a[median], a[first]
    pivot = a[first]
    left, right = first + 1, last
    while True:
        while less(a[left], pivot):
            left += 1
        right -= 1
        while less(pivot, a[right]):
            right -= 1
        if left >= right:
            return left
        a[left], a[right] = a[right], a[left]
        left += 1
