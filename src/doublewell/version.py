"""Version: the one place where it stands; the build reads it from here.

A plain value, so that the package also knows its version where it is used from its folder without being installed.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.2.0.dev0"
