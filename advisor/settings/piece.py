"""What every group of settings is, and limits that many share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["HIDDEN", "Minutes", "Piece", "Share"]

HIDDEN = "(not shown)"
"""Stands where a value may hold a secret."""

Share = Annotated[float, Field(ge=0.0, le=1.0)]
Minutes = Annotated[float, Field(gt=0.0, le=7 * 24 * 60)]


class Piece(BaseModel):
    """A frozen group; a key nobody knows is an error, not a silence."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, hide_input_in_errors=True)
