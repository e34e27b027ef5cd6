"""A table of ratios as a picture: one bar a row, a tick where the row has to reach."""
from html import escape

ROW, LEFT, WIDTH, RIGHT, TOP = 26, 330, 420, 270, 58
STYLE = "text{font:13px sans-serif;fill:#222}.h{font-size:15px;font-weight:bold}.s{fill:#666}.bar{fill:#3b7dd8}.miss{fill:#d8653b}.tick{stroke:#222;stroke-width:2}.one{stroke:#aaa;stroke-dasharray:3 3}"


def draw(path, title, subtitle, rows):
    """|rows|: (name, ratio, target or None, text behind the bar)."""
    most = max([1.0] + [max(ratio, target or 0) for _, ratio, target, _ in rows]) * 1.05
    height = TOP + ROW * len(rows) + 14

    def x(ratio):
        return LEFT + WIDTH * ratio / most

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + WIDTH + RIGHT}" height="{height}" viewBox="0 0 {LEFT + WIDTH + RIGHT} {height}">',
           f"<style>{STYLE}</style>", '<rect width="100%" height="100%" fill="#fff"/>',
           f'<text class="h" x="14" y="24">{escape(title)}</text>', f'<text class="s" x="14" y="44">{escape(subtitle)}</text>',
           f'<line class="one" x1="{x(1):.1f}" x2="{x(1):.1f}" y1="{TOP - 6}" y2="{height - 8}"/>']
    for i, (name, ratio, target, text) in enumerate(rows):
        y = TOP + ROW * i
        missed = target is not None and ratio < target
        out.append(f'<text x="{LEFT - 10}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        out.append(f'<rect class="{"miss" if missed else "bar"}" x="{LEFT}" y="{y + 2}" width="{x(ratio) - LEFT:.1f}" height="{ROW - 9}"/>')
        if target is not None:
            out.append(f'<line class="tick" x1="{x(target):.1f}" x2="{x(target):.1f}" y1="{y}" y2="{y + ROW - 5}"/>')
        out.append(f'<text x="{LEFT + WIDTH + 12}" y="{y + 15}">{escape(text)}</text>')
    path.write_text("\n".join(out + ["</svg>"]) + "\n")
