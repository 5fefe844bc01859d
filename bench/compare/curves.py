"""Cost per node over the number of nodes, as an SVG picture: a flat line is linear growth.

One panel per quantity, both axes logarithmic, one line per series. Colours follow the reader's
light or dark theme.
"""

import html
import math

from rows import OURS

WIDTH, HEIGHT, LEFT, TOP, GAP = 1140, 376, 70, 44, 80
INSIDE = 250  # height of a panel
LEGEND = 230  # width of an entry
COLOURS = (
    ('#0b62c4', '#6cb0ff'),
    ('#b3471d', '#ff9e6e'),
    ('#1a7f37', '#57d364'),
    ('#8250df', '#c297ff'),
)
STYLE = """
text { font: 12px system-ui, sans-serif; fill: #1f2328; }
.axis { stroke: #d0d7de; } polyline { fill: none; stroke-width: 1.5; }
%s
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; } .axis { stroke: #3d444d; }
  %s
}
"""


class Growth:
    """Rows that exist for several numbers of nodes, by quantity and series."""

    def __init__(self):
        self.quantities = {}

    def add(self, quantity, series, count, row):
        self.quantities.setdefault(quantity, {}).setdefault(series, {})[count] = row

    def points(self, quantity):
        """{series: [(number of nodes, median)]}, without zeros and missing values."""
        found = {}
        for series, rows in self.quantities[quantity].items():
            values = [(count, row.median(OURS)) for count, row in sorted(rows.items())]
            found[series] = [(n, v) for n, v in values if v > 0 and math.isfinite(v)]
        return found

    def unit(self, quantity):
        return next(iter(next(iter(self.quantities[quantity].values())).values())).unit


class Axis:
    """Maps a logarithmic range around the values to pixels from `begin` to `end`."""

    def __init__(self, values, begin, end):
        logs = [math.log10(value) for value in values]
        self.low = math.floor(min(logs, default=0))
        self.high = max(math.ceil(max(logs, default=1)), self.low + 1)
        self.begin, self.end = begin, end

    def at(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.begin + (self.end - self.begin) * part

    def ticks(self):
        return [10.0**power for power in range(self.low, self.high + 1)]


def style():
    light, dark = (
        ' '.join(
            f'circle.s{i} {{ fill: {both[k]}; }} polyline.s{i} {{ stroke: {both[k]}; }}'
            for i, both in enumerate(COLOURS)
        )
        for k in (0, 1)
    )
    return STYLE % (light, dark)


def grid(across, up):
    parts = []
    for value in across.ticks():
        x = across.at(value)
        parts.append(
            f'<line class="axis" x1="{x:.1f}" x2="{x:.1f}" y1="{up.begin}" y2="{up.end}"/>'
        )
        parts.append(
            f'<text x="{x:.1f}" y="{up.begin + 18}" text-anchor="middle">{value:,.0f}</text>'
        )
    for value in up.ticks():
        y = up.at(value)
        parts.append(
            f'<line class="axis" x1="{across.begin}" x2="{across.end}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        parts.append(
            f'<text x="{across.begin - 8}" y="{y + 4:.1f}" text-anchor="end">{value:,g}</text>'
        )
    return parts


def panel(growth, quantity, left, width):
    lines = growth.points(quantity)
    every = [point for points in lines.values() for point in points]
    across = Axis([n for n, _ in every], left, left + width)
    up = Axis([value for _, value in every], TOP + INSIDE, TOP)
    title = html.escape(f'{quantity} per node, {growth.unit(quantity)}, by nodes')
    parts = [f'<text x="{left}" y="{TOP - 20}">{title}</text>', *grid(across, up)]
    for number, (series, points) in enumerate(lines.items()):
        kind = f's{number % len(COLOURS)}'
        places = [(across.at(n), up.at(value)) for n, value in points]
        path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in places)
        parts.append(f'<polyline class="{kind}" points="{path}"/>')
        parts += [f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in places]
        x, y = left + LEGEND * (number % 2), TOP + INSIDE + 44 + 18 * (number // 2)
        parts.append(f'<circle class="{kind}" cx="{x + 6}" cy="{y - 4}" r="4"/>')
        parts.append(f'<text x="{x + 16}" y="{y}">{html.escape(series)}</text>')
    return parts


def picture(growth):
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<style>{style()}</style>',
    ]
    share = (WIDTH - LEFT) // max(1, len(growth.quantities))
    for number, quantity in enumerate(growth.quantities):
        parts += panel(growth, quantity, LEFT + number * share, share - GAP)
    return '\n'.join([*parts, '</svg>']) + '\n'
