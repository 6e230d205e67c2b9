"""Why a walk did not come to a node: the question that led away, and what would have led there."""
