"""The look of the page."""

from __future__ import annotations

from nearkin.report import palette

LAYOUT = """
*{box-sizing:border-box}
html{scroll-behavior:smooth;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,
"Helvetica Neue",Arial,sans-serif;font-variant-numeric:tabular-nums}
a{color:var(--accent)}
h1,h2,h3,h4{line-height:1.2;margin:0;text-wrap:balance}
h1,h2,h3,h4,summary,.lead,.note,td.source{overflow-wrap:anywhere}
h1{font-size:1.05rem;font-weight:600;color:var(--soft)}
h2{font-size:1.45rem;letter-spacing:-.01em}
h3{font-size:1rem;margin:1.4rem 0 .6rem}
h4{font-size:.95rem;margin:1.2rem 0 .5rem;color:var(--soft)}
h3 small,summary small{font-weight:400;color:var(--soft)}
p{margin:.5rem 0}
small{font-size:.82em;color:var(--soft)}
.note,.lead{color:var(--soft)}
.note{font-size:.88rem}
.lead{max-width:78ch;margin:.4rem 0 1.1rem;font-size:.95rem}
.page{max-width:1560px;margin:0 auto;padding:0 clamp(.8rem,2.5vw,2rem) 4rem}
header{display:flex;align-items:center;gap:1rem;padding:1.1rem 0 .8rem}
header div{flex:1;min-width:0}
header p{margin:.15rem 0 0;font-size:.85rem;color:var(--soft);overflow-wrap:anywhere}
button{font:inherit;color:var(--ink);background:var(--card);border:1px solid var(--line);border-radius:99px;
padding:.35rem .8rem;cursor:pointer;font-size:.85rem;white-space:nowrap}
button:hover{border-color:var(--axis)}
nav{display:flex;gap:.4rem;font-size:.86rem;padding:.1rem 0 .8rem;overflow-x:auto;scrollbar-width:none}
nav a{color:var(--soft);text-decoration:none;padding:.2rem .7rem;border:1px solid var(--line);
border-radius:99px;white-space:nowrap}
nav a:hover{color:var(--accent);text-decoration:underline}
nav a[aria-current]{color:var(--ink);border-color:var(--accent)}
section{background:var(--card);border:1px solid var(--line);border-radius:14px;padding:clamp(1rem,2.2vw,1.7rem);
margin:0 0 1.1rem;scroll-margin-top:1rem;min-width:0}
.hero{padding:clamp(1.2rem,3vw,2.4rem)}
.hero h2{font-size:clamp(1.6rem,4.5vw,2.7rem);letter-spacing:-.025em;overflow-wrap:anywhere}
.hero h2 .which{display:block;font-size:clamp(1.1rem,2.4vw,1.45rem);letter-spacing:-.01em;line-height:1.35;margin-top:.15em}
.whole{white-space:nowrap}
.hero h2 .badge{font-size:.8rem;letter-spacing:0;vertical-align:middle}
.sentence{font-size:1.02rem;max-width:85ch;margin:1.2rem 0 0;overflow-wrap:anywhere}
.tiles{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));
gap:clamp(.5rem,1.5vw,.8rem);margin:1.3rem 0 0}
.tile{border:1px solid var(--line);border-radius:10px;padding:clamp(.6rem,1.6vw,.85rem) clamp(.65rem,1.8vw,1rem);min-width:0}
.tile dt{font-size:.8rem;color:var(--soft);overflow-wrap:anywhere}
.tile dd{margin:0;font-size:.87rem;color:var(--soft);overflow-wrap:anywhere}
.tile strong{display:block;font-size:clamp(1.2rem,3.4vw,1.65rem);line-height:1.25;color:var(--ink);font-weight:650;
letter-spacing:-.02em}
.tile.sure{background:var(--good-ground);border-color:var(--hit)}
.tile.sure strong{color:var(--accent)}
.tile.unsure{background:var(--warn-ground);border-color:var(--miss)}
.tile.unsure strong{color:var(--warn)}
.warning{background:var(--warn-ground);border-left:4px solid var(--miss);border-radius:6px;
padding:.6rem .9rem;margin:1rem 0 0}
.badge{display:inline-block;font-size:.74rem;font-weight:500;line-height:1.35;border:1px solid var(--line);color:var(--soft);
border-radius:99px;padding:.08rem .55rem;white-space:nowrap}
.badge.warned{border-color:var(--miss);color:var(--warn);background:var(--warn-ground)}
.panels{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,350px),1fr));gap:1.3rem 2rem;margin:.4rem 0}
.panels.small{grid-template-columns:repeat(auto-fill,minmax(min(100%,290px),1fr));gap:1.1rem 1.5rem;margin-top:1.2rem}
.panel{margin:0;min-width:0}
.panel svg{display:block;width:100%;height:auto;max-width:430px;overflow:visible}
.panels.small .panel svg{max-width:300px}
.panel.wide svg{max-width:1040px}
.panel.wide .on-narrow svg{max-width:480px}
.panels:has(>.panel.wide:only-child){grid-template-columns:1fr}
.aside{margin-top:1rem}
@media(min-width:1000px){.beside{display:flex;gap:3rem;align-items:start}.beside .scroll{flex:none;max-width:62%}
.aside{flex:1;margin:0;min-width:0;max-width:42rem}.aside .panel svg{max-width:100%}}
.legend{display:flex;flex-wrap:wrap;gap:.2rem .9rem;padding:0;margin:.2rem 0 .6rem;list-style:none;font-size:.86rem}
.legend li{display:flex;align-items:center;gap:.35rem;margin:0}
.legend svg{width:1em;height:1em;overflow:visible}
.scroll{overflow-x:auto;max-width:100%;overscroll-behavior-x:contain}
.on-narrow,.swipe{display:none}
[data-more=right],.scroll[data-more=both]{-webkit-mask-image:linear-gradient(to left,#0002,#000 2.6rem);
mask-image:linear-gradient(to left,#0002,#000 2.6rem)}
[data-more=left]:not(.scroll){-webkit-mask-image:linear-gradient(to right,#0002,#000 2.6rem);
mask-image:linear-gradient(to right,#0002,#000 2.6rem)}
[data-more=both]:not(.scroll){-webkit-mask-image:linear-gradient(to right,#0002,#000 2.6rem calc(100% - 2.6rem),#0002);
mask-image:linear-gradient(to right,#0002,#000 2.6rem calc(100% - 2.6rem),#0002)}
@media(min-width:1000px){.tiles{grid-template-columns:4fr 4fr 5fr;grid-auto-flow:column;grid-auto-columns:5fr}}
.nearkin-figure{font-family:inherit;font-size:12px}
.nearkin-figure .series{transition:opacity .12s}
.nearkin-figure:has(.series:hover) .series:not(:hover){opacity:.18}
.nearkin-figure .row:hover .ink{font-weight:600}
details{border-top:1px solid var(--line);padding:.2rem 0}
details[open]{padding-bottom:1rem}
summary{cursor:pointer;padding:.55rem 0;font-weight:600}
table{border-collapse:separate;border-spacing:0;font-size:.87rem;min-width:min(100%,420px)}
caption{text-align:left;color:var(--soft);font-size:.82rem;padding:.3rem 0}
th{font-weight:600;color:var(--soft);font-size:.8rem;border-bottom:1px solid var(--axis);vertical-align:bottom}
th,td{padding:5px .6rem;line-height:21px;text-align:left;white-space:nowrap}
tr+tr td{border-top:1px solid var(--line)}
td:first-child,th:first-child{padding-left:0;position:sticky;left:0;background:var(--card)}tr.part th{position:static}
.number{text-align:right}
tbody tr:hover td{background:color-mix(in srgb,var(--accent) 8%,var(--card))}
.sortable th button{all:unset;cursor:pointer;color:inherit;font:inherit}
.sortable th button:hover,.sortable th button:focus-visible{color:var(--accent);text-decoration:underline}
.sortable th[aria-sort=ascending] button::after{content:" ↑"}
.sortable th[aria-sort=descending] button::after{content:" ↓"}
tr.hole td,.missing,.failed{color:var(--warn)}
.scores{font-size:.81rem}
.scores th,.scores td{padding:5px .3rem}
.scores td:first-child,.scores th:first-child{padding-left:0}
td.source{white-space:normal;min-width:min(17rem,42vw);max-width:58rem;line-height:1.45}
.printed td.source{min-width:15rem}
.panel+.scroll{margin-top:1.2rem}
.epoch{display:inline-block;min-width:1.35em}
.failed,.missing{font-size:.85em}
.unused{color:var(--soft)}
tr.part th{padding-top:.8rem;border-bottom:0}
tr.part span{position:sticky;left:0}
tr+tr.part th{border-top:1px solid var(--line)}
.heats th{white-space:normal;min-width:4.6rem}
.heats th.word{min-width:8rem}
.heats.tall th.number{writing-mode:vertical-lr;transform:rotate(180deg);min-width:0;white-space:nowrap;text-align:left;
vertical-align:top;padding:.4rem .1rem}
.heats.tall thead th{border-bottom:0}
.heats.tall tbody tr:first-child>*{border-top:1px solid var(--axis)}
.heats.tall td.number{padding:5px .42rem;min-width:3.33rem}
.heats td.source span{color:var(--soft)}
.heats td.word{max-width:14rem;overflow:hidden;text-overflow:ellipsis}
.heats td.source{max-width:none;overflow:visible}
@media(min-width:700px){.heats td.source{white-space:nowrap;padding-right:2rem}}
tbody tr td.heat{background:color-mix(in srgb,var(--s0) calc(var(--v)*.45),var(--card))}
.key{display:inline-block;width:.8em;height:.8em;margin-right:.5em;vertical-align:-.04em;overflow:visible}
abbr{text-decoration:none}
.holes{border:1px dashed var(--miss);border-radius:10px;padding:.2rem 1rem .6rem;margin-bottom:1rem}
.holes h3{margin:.6rem 0 .2rem;color:var(--warn)}
ul{margin:.3rem 0;padding-left:1.2rem}
li{margin:.25rem 0;max-width:95ch;overflow-wrap:anywhere}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(100%,210px),1fr));gap:.8rem}
.card{max-width:240px;border:1px solid var(--line);border-radius:10px;padding:.8rem;min-width:0}
.card p{margin:.35rem 0 0;line-height:1.35;overflow-wrap:break-word;hyphens:auto}
.card span{color:var(--soft)}
.pair{display:grid;grid-template-columns:1fr 1fr;gap:.5rem}
img{display:block;width:100%;aspect-ratio:1;object-fit:contain;background:var(--ground);border-radius:5px}
img.pixels{image-rendering:pixelated}
.strip{display:grid;
grid-template-columns:minmax(90px,121px) repeat(8,minmax(60px,112px));gap:.45rem;overflow-x:auto;padding:.3rem 2px .7rem;
overscroll-behavior-x:contain}
.strip figure{margin:0;min-width:0}
.strip figcaption{font-size:.74rem;line-height:1.3;color:var(--soft);overflow-wrap:break-word;hyphens:auto;padding-top:.2rem}
.strip figcaption span{display:block}
.strip img{border:3px solid transparent}
.strip .query{padding-right:.55rem;border-right:1px solid var(--line)}
.strip .query figcaption{color:var(--ink);font-weight:600}
.strip .hit img{border-color:var(--hit)}
.strip .miss img{border:3px dashed var(--miss)}
.strip .hit b,.hit-word{color:var(--hit)}
.strip .miss b,.miss-word{color:var(--warn)}
footer{color:var(--soft);font-size:.85rem;padding:.5rem 0}
.files a{margin-right:.9rem;display:inline-block}
@media(min-width:1180px){
.page{display:grid;grid-template-columns:190px minmax(0,1fr);column-gap:2rem}
header,footer{grid-column:1/-1}
nav{flex-direction:column;overflow:visible;gap:.15rem;position:sticky;top:1rem;align-self:start;padding:.4rem 0}
nav a{border:0;border-left:2px solid var(--line);border-radius:0;padding:.22rem .7rem;white-space:normal}
nav a:hover{border-color:var(--accent)}
nav a[aria-current]{font-weight:600;border-left-width:4px;padding-left:calc(.7rem - 2px)}
}
@media(max-width:760px){
.strip{grid-template-columns:minmax(0,1.25fr) repeat(4,minmax(0,1fr))}
.strip .query{grid-row:1/span 2}
.on-wide{display:none}.on-narrow{display:block}
.spot>*{transform:scale(1.7)}
td:first-child .name{display:block;width:max-content;max-width:45vw;white-space:normal;overflow-wrap:anywhere}
}
@media(max-width:600px){
.swipe{display:block;margin:.8rem 0 -.6rem}
.strip{grid-template-columns:repeat(4,minmax(0,1fr))}
.strip .query{grid-area:1/1/auto/-1;display:grid;grid-template-columns:subgrid;align-items:center;border:0;padding:0}
.strip .query figcaption{grid-column:2/-1;font-size:.82rem}
.strip figcaption{font-size:.7rem}
.cards{grid-template-columns:repeat(2,minmax(0,1fr))}
.runs th,.runs td{padding:5px .19rem}.runs td:first-child,.runs th:first-child{padding-left:0}
.panels.small.many{grid-template:auto auto/none;grid-auto-flow:column;grid-auto-columns:min(78vw,300px);overflow-x:auto;
padding-bottom:.6rem;overscroll-behavior-x:contain;scroll-snap-type:x proximity}
.panels.small.many .panel{scroll-snap-align:start}
}
@media print{body{background:#fff}nav,button{display:none}section{break-inside:avoid;border:0;padding:.5rem 0}}
@media(prefers-reduced-motion:reduce){html{scroll-behavior:auto}}
"""


def style() -> str:
    """The whole style sheet: colours of both themes, layout, figures."""
    light, dark = palette.variables(), palette.variables(dark=True)
    return (
        f":root{{color-scheme:light;{light}}}"
        f"@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{color-scheme:dark;{dark}}}}}"
        f":root[data-theme=dark]{{color-scheme:dark;{dark}}}" + palette.rules() + LAYOUT.replace("\n", "")
    )
