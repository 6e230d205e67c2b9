"""What each series of a run looks like: its levels, scatter, changes and spikes. Nothing here judges."""

from __future__ import annotations

from stabtree.profile.build import profile_of, profiles, scatter_of
from stabtree.profile.model import Profile
from stabtree.profile.segments import far

__all__ = ["Profile", "far", "profile_of", "profiles", "scatter_of"]
