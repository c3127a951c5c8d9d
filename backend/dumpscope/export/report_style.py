"""Style sheet of the report: readable on paper, on a light screen and on a dark one."""

from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --page: #ffffff; --ink: #1b1f24; --soft: #57606a; --line: #d0d7de; --card: #f6f8fa;
  --bad: #b42318; --fine: #1a7f37; --warn: #8a6100; --mark: #b0245c; }
@media (prefers-color-scheme: dark) {
  :root { --page: #15181c; --ink: #e6e9ec; --soft: #a2abb5; --line: #363d45; --card: #1e2329;
    --bad: #ff8b7e; --fine: #5fd07a; --warn: #e8b93f; --mark: #f27aa9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1100px; margin: 0 auto; padding: 24px 16px 48px; }
h1 { font-size: 22px; margin: 0 0 16px; overflow-wrap: anywhere; } h2 { font-size: 17px; margin: 0 0 8px; }
h3 { font-size: 15px; margin: 0 0 4px; overflow-wrap: anywhere; }
section { margin: 0 0 24px; } p { margin: 4px 0; }
code, pre { font: 13px/1.45 ui-monospace, monospace; } code { overflow-wrap: anywhere; }
pre { overflow: auto; max-height: 420px; background: var(--card); border: 1px solid var(--line); padding: 8px; margin: 6px 0; }
.banner { border: 1px solid var(--line); border-left: 6px solid var(--fine); background: var(--card); padding: 14px 16px; }
.banner.bad { border-left-color: var(--bad); } .origin { margin: 12px 0 0; }
.tag { font-size: 12px; font-weight: 400; border: 1px solid var(--line); border-radius: 10px;
  padding: 0 8px; color: var(--soft); }
table { border-collapse: collapse; font-size: 13px; } th, td { border-bottom: 1px solid var(--line); padding: 4px 8px;
  text-align: left; vertical-align: top; } td code { white-space: nowrap; } .wide { overflow-x: auto; }
td.no { color: var(--bad); } td.warning { color: var(--warn); } td.yes { color: var(--fine); } td { white-space: nowrap; }
.counts { display: flex; flex-wrap: wrap; gap: 8px 20px; margin: 8px 0; } .counts dt { color: var(--soft); font-size: 12px; }
.counts dd { margin: 0; font-weight: 600; } figure { margin: 0; } figcaption { color: var(--soft); font-size: 13px; }
.chart { width: 100%; height: auto; } .chart text { fill: var(--soft); font: 11px system-ui, sans-serif; }
.chart .grid { stroke: var(--line); } .chart .floor { stroke: var(--mark); stroke-dasharray: 3 3; }
.chart .edge { stroke: var(--soft); stroke-dasharray: 6 4; } .chart .mark { stroke: var(--mark); stroke-width: 1.5; }
.chart .box line, .chart .box rect { stroke: var(--ink); fill: none; stroke-width: 1.5; }
footer { color: var(--soft); font-size: 12px; } summary { cursor: pointer; }
"""
