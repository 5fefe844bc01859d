"""Rows as an SVG picture: the ratio of each value to its goal, on a logarithmic axis.

Values left of the line in the middle have reached the goal. Colours follow the reader's light or
dark theme. Omits rows whose goal is 0 or depends on a value that was not measured.
"""

import html
import math

from rows import FLOOR, OURS, THEIRS

WIDTH, TEXT, STEP, TOP, BOTTOM = 1140, 540, 22, 64, 40
DECADES = (-2, 3)  # of the axis; values beyond are drawn at its end
COLOURS = {OURS: ('#0b62c4', '#6cb0ff'), THEIRS: ('#b3471d', '#ff9e6e'), FLOOR: ('#777', '#999')}
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.axis { stroke: #d0d7de; } .goal { stroke: #1f2328; stroke-width: 1.5; }
%s
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .axis { stroke: #3d444d; } .goal { stroke: #e6edf3; }
  %s
}
"""


def distance(row, subject):
    """Value / goal, above 1 if the goal is missed; None if the row is omitted."""
    limit = row.limit()
    if not limit or not math.isfinite(limit) or not row.was_measured(subject):
        return None
    value = row.median(subject)
    ratio = value / limit
    if not row.goal.at_least:
        return ratio
    return 1 / ratio if ratio else math.inf


def across(ratio):
    """The position on the axis, in pixels."""
    low, high = DECADES
    power = high if ratio == math.inf else math.log10(ratio) if ratio else low
    return TEXT + (WIDTH - TEXT - 20) * (min(max(power, low), high) - low) / (high - low)


def style():
    light, dark = (
        ' '.join(f'.{name} {{ fill: {both[i]}; }}' for name, both in COLOURS.items())
        for i in (0, 1)
    )
    return STYLE % (light, dark)


def axis(bottom):
    parts = []
    for power in range(DECADES[0], DECADES[1] + 1):
        x = across(10.0**power)
        kind, name = ('goal', 'goal') if power == 0 else ('axis', f'× {10.0**power:g}')
        parts.append(f'<line class="{kind}" x1="{x:.0f}" x2="{x:.0f}" y1="{TOP}" y2="{bottom}"/>')
        parts.append(f'<text x="{x:.0f}" y="{bottom + 18}" text-anchor="middle">{name}</text>')
    return parts


def legend():
    parts = [f'<text x="{TEXT}" y="24">value to goal: left of the line is reached</text>']
    for number, name in enumerate(COLOURS):
        x = TEXT + 110 * number
        parts.append(f'<circle class="{name}" cx="{x + 6}" cy="44" r="5"/>')
        parts.append(f'<text x="{x + 16}" y="48">{name}</text>')
    return parts


def dots(row, y):
    text = html.escape(f'{row.suite}, {row.case}')
    parts = [f'<text x="{TEXT - 14}" y="{y + 4}" text-anchor="end">{text}</text>']
    for subject in (FLOOR, THEIRS, OURS):
        ratio = distance(row, subject)
        if ratio is not None:
            x = across(ratio)
            parts.append(f'<circle class="{subject}" cx="{x:.1f}" cy="{y}" r="5"/>')
    return parts


def picture(rows):
    shown = [row for row in rows if distance(row, OURS) is not None]
    bottom = TOP + STEP * len(shown) + 4
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + BOTTOM}">',
        f'<style>{style()}</style>',
        *axis(bottom),
        *legend(),
    ]
    for number, row in enumerate(shown):
        parts += dots(row, TOP + STEP * number + STEP // 2)
    return '\n'.join([*parts, '</svg>']) + '\n'
