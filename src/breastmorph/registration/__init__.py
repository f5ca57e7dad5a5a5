"""Registration: the template in every subject's shape (rigid, smooth start, coarse to fine)."""

from __future__ import annotations

from breastmorph.registration.parameters import (
    PRESETS,
    RegistrationParameters,
    RigidParameters,
    StageParameters,
    WarpParameters,
    preset,
)
from breastmorph.registration.pipeline import Registrar, register
from breastmorph.registration.result import Registration, StageMetrics

__all__ = [
    "PRESETS",
    "Registrar",
    "Registration",
    "RegistrationParameters",
    "RigidParameters",
    "StageMetrics",
    "StageParameters",
    "WarpParameters",
    "preset",
    "register",
]
