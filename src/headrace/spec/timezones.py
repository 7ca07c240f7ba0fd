"""Time zones by IANA name or by offset."""

from __future__ import annotations

import re
import zoneinfo
from typing import Annotated, TypeAlias

from pydantic import AfterValidator

from headrace.errors import did_you_mean
from headrace.spec.problems import shown, wrong

_OFFSET = re.compile(r"[+-]([01]\d|2[0-3]):[0-5]\d", re.ASCII)


def _known(name: str) -> str:
    if name == "UTC" or _OFFSET.fullmatch(name):
        return name
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        hint = did_you_mean(name, zoneinfo.available_timezones())
        raise wrong(
            f"there is no time zone {shown(name)}; write an IANA name or an offset (+08:00).{hint}"
        ) from None
    return name


Timezone: TypeAlias = Annotated[str, AfterValidator(_known)]
"""``"Asia/Shanghai"``, ``"UTC"`` or ``"+08:00"``."""
