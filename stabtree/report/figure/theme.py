"""The colours of a picture, on light and on dark."""

from __future__ import annotations

LIGHT = {
    "back": "#ffffff",
    "ink": "#1f2328",
    "soft": "#59636e",
    "grid": "#e7eaee",
    "frame": "#f7f8fa",
    "curve": "#0a6ebd",
    "band": "#0a6ebd33",
    "behind": "#7b8490",
    "spread": "#7b84905c",
    "bad": "#c9252d",
    "lost": "#c9252d1f",
    "good": "#1a7f37",
}
DARK = {
    "back": "#14171c",
    "ink": "#e6e9ee",
    "soft": "#a3acb8",
    "grid": "#2a3038",
    "frame": "#1a1e25",
    "curve": "#58b4f5",
    "band": "#58b4f540",
    "behind": "#8d96a3",
    "spread": "#8d96a35c",
    "bad": "#ff7b72",
    "lost": "#ff7b7229",
    "good": "#4fc365",
}
_RULES = (
    "{scope}text{{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,'DejaVu Sans',"
    "sans-serif;font-size:12px;fill:{ink}}}"
    "{scope}.back{{fill:{back}}}"
    "{scope}.title{{font-size:16px;font-weight:600}}"
    "{scope}.name{{font-weight:600;font-size:13px}}"
    "{scope}.axis{{fill:{soft};font-weight:400;font-size:11px}}"
    "{scope}.mark,{scope}.onset,{scope}.parting{{fill:{bad}}}"
    "{scope}.mark,{scope}.onset,{scope}.parting,{scope}.restart{{font-weight:600;font-size:12px}}"
    "{scope}.restart{{fill:{good}}}"
    "{scope}.onset,{scope}.parting,{scope}.restart,{scope}.name{{paint-order:stroke;stroke:{back};stroke-width:5px;stroke-linejoin:round}}"
    "{scope}.beyond{{font-size:11px;fill:{curve}}}"
    "{scope}.frame{{fill:{frame}}}"
    "{scope}.grid{{stroke:{grid};fill:none}}"
    "{scope}.curve{{fill:{band};stroke:{curve};stroke-width:1.4;stroke-linejoin:round;stroke-linecap:round}}"
    "{scope}.behind{{fill:{spread};stroke:{behind};stroke-width:1.4;stroke-linejoin:round;stroke-linecap:round}}"
    "{scope}.cross{{stroke:{bad};stroke-width:1.8;stroke-linecap:round;fill:none}}"
    "{scope}.lost{{fill:{lost}}}"
    "{scope}.edge{{fill:{curve}}}"
    "{scope}.lead{{stroke:{bad};stroke-width:1.2;stroke-dasharray:1 3;stroke-linecap:round}}"
    "{scope}.onset-line,{scope}.parting-line{{stroke:{bad};stroke-width:1.4;stroke-dasharray:4 3}}"
    "{scope}.restart-line{{stroke:{good};stroke-width:1.4;stroke-dasharray:4 3}}"
)


def style(*, dark: bool | None) -> str:
    """Return the style sheet of one palette, or of variables that follow what the reader prefers where `dark` is None.

    A page restyles the picture by setting the variables (`--fig-ink`, ...) on `svg.stabtree`.
    """
    if dark is not None:
        return _RULES.format(scope="", **(DARK if dark else LIGHT))
    names = {name: f"var(--fig-{name})" for name in LIGHT}
    # Without weight, so that any rule of a page wins.
    own = f":where(svg.stabtree){{{_variables(LIGHT)}}}"
    own += f"@media (prefers-color-scheme:dark){{:where(svg.stabtree){{{_variables(DARK)}}}}}"
    return own + _RULES.format(scope="svg.stabtree ", **names)


def _variables(palette: dict[str, str]) -> str:
    return ";".join(f"--fig-{name}:{color}" for name, color in palette.items())
