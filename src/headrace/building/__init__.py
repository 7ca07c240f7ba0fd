"""Spec to store: parse, fit, encode, write; resume; what is stale and why."""

from headrace.building.build import BuildReport, build, why_stale
from headrace.building.encode import Encoder, encode

__all__ = ["BuildReport", "Encoder", "build", "encode", "why_stale"]
