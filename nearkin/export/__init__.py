"""A model to take away: ONNX with everything inside, or safetensors with a card."""

from __future__ import annotations

from nearkin.export.card import card
from nearkin.export.onnx import to_onnx
from nearkin.export.portable import Portable

__all__ = ["Portable", "card", "to_onnx"]
