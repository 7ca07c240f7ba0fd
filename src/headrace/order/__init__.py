"""Which sample when, from integers alone: no data, no state, no clock."""

from headrace.order.block import Block
from headrace.order.bucketed import LengthBucketed
from headrace.order.permutation import Permutation
from headrace.order.plan import Part, Plan
from headrace.order.sampler import Budget, EpochOrder, Global, Listed, Sampler, Sequential
from headrace.order.weighted import ClassBalanced, Weighted

__all__ = [
    "Block",
    "Budget",
    "ClassBalanced",
    "EpochOrder",
    "Global",
    "LengthBucketed",
    "Listed",
    "Part",
    "Permutation",
    "Plan",
    "Sampler",
    "Sequential",
    "Weighted",
]
