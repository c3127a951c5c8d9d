/** Boxes and lines of a path view: HTML boxes in one list per step, lines behind them, arrow keys from box to box. */
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { PathView } from "../../../api/types";
import { NO_FILTER } from "../../../base/address/address";
import { drawLine, spread } from "../../../base/comparison/pathLayout";
import { isArrow, walk } from "../../../base/comparison/pathWalk";
import { markWord } from "../../../base/comparison/verdicts";
import type { Translate } from "../../../texts/translation";
import { useTranslation } from "../../../texts/useTranslation";
import { ClassMark } from "../../../widgets/marks/Mark";
import { useOriginWalk } from "../selection/OriginsProvider";
import { useSelection } from "../selection/SelectionProvider";
import { differs, endHelp, sentences, shortCall, shortModule } from "./callWords";
import { HEIGHT, keyOf, planPath, SMALL } from "./pathPlan";
import classes from "./Stage.module.css";

/** Between columns, with room for an error and a tensor's name. */
const GAP = 64;
const LEAST = 100;
const MOST = 190;
const MARGIN = 14;
const LABEL = 25;

interface PathGraphProps {
  view: PathView;
  width: number;
  busy: boolean;
}

export function PathGraph({ view, width, busy }: PathGraphProps) {
  const { t } = useTranslation();
  const id = useId();
  const { update, select } = useSelection();
  const { moveToFirstOrigin } = useOriginWalk();
  const canvas = useRef<HTMLDivElement>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const plan = useMemo(() => planPath(view, t), [view, t]);
  const middle = `call ${view.middle}`;
  const [focused, setFocused] = useState(middle);
  const [pointed, setPointed] = useState<string | null>(null);
  const { layout } = plan;
  const inner = width - 2 * MARGIN - 16; // less a scroll bar
  const each = Math.floor((inner - (layout.columns - 1) * GAP) / layout.columns);
  const own = Math.min(MOST, Math.max(LEAST, each));
  const size = layout.columns * own + (layout.columns - 1) * GAP;
  const left = (column: number) => (column - layout.first) * (own + GAP);

  // The call in the middle takes the focus, unless it is somewhere else on the screen.
  useEffect(() => {
    setFocused(middle);
    const active = document.activeElement;
    if (active !== null && active !== document.body && !canvas.current?.contains(active)) return;
    canvas.current?.querySelector<HTMLElement>(`[data-key="${middle}"]`)?.focus({ preventScroll: true });
  }, [middle]);

  useLayoutEffect(() => {
    const view = scroll.current;
    if (!view) return;
    const at = layout.boxes.get(middle);
    const x = (0 - layout.first) * (own + GAP) + own / 2 + MARGIN;
    view.scrollLeft = x - view.clientWidth / 2;
    view.scrollTop = (at?.top ?? 0) + HEIGHT / 2 + MARGIN - view.clientHeight / 2;
  }, [layout, middle, own]);

  const press = (event: KeyboardEvent) => {
    const from = (event.target as HTMLElement).dataset.key;
    if (from === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Home") {
      event.preventDefault();
      moveToFirstOrigin();
      return;
    }
    if (!isArrow(event.key)) return;
    event.preventDefault();
    const next = walk(plan.walked, plan.lines, from, event.key);
    if (next === null) return;
    canvas.current?.querySelector<HTMLElement>(`[data-key="${next}"]`)?.focus();
  };

  const lit = pointed ?? focused;
  const told = view.boxes.find((box) => keyOf(box) === lit) ?? view.boxes.find((box) => keyOf(box) === middle);
  const columns = Array.from({ length: layout.columns }, (_, place) => place + layout.first);
  const place = (key: string, height: number) => {
    const at = layout.boxes.get(key);
    return { left: left(at?.column ?? 0), top: at?.top ?? 0, width: own, height };
  };
  const labels = plan.lines.map((line, index) => {
    // In the gap beside the box that is further from the middle, where lines lie apart.
    const stops = layout.lines[index]?.stops ?? [];
    const outer = (stops[0]?.column ?? 0) < 0 ? 0 : stops.length - 2;
    const [a, b] = [stops[outer], stops[outer + 1]];
    return { gap: a?.column ?? 0, y: ((a?.y ?? 0) + (b?.y ?? 0)) / 2, line };
  });
  for (const gap of new Set(labels.map((one) => one.gap))) {
    const mine = labels.filter((one) => one.gap === gap);
    const moved = spread(
      mine.map(({ y }) => y),
      LABEL,
    );
    mine.forEach((one, index) => {
      one.y = moved[index] ?? one.y;
    });
  }
  return (
    <>
      <section
        ref={scroll}
        className={`${classes.scroll} ${busy ? classes.busy : ""}`}
        aria-busy={busy}
        aria-label={t("path.open")}
        data-testid="path"
      >
        {/* biome-ignore lint/a11y/noStaticElementInteractions: arrow keys of the boxes inside */}
        <div
          ref={canvas}
          className={classes.canvas}
          style={{ width: size, height: layout.height, margin: MARGIN, placeSelf: "center" }}
          onKeyDown={press}
        >
          <svg className={classes.lines} width={size} height={layout.height} aria-hidden="true">
            {plan.lines.map((line, index) => {
              const stops = layout.lines[index]?.stops ?? [];
              const points = stops.flatMap(({ column, y }, at) => [
                ...(at > 0 ? [{ x: left(column), y }] : []),
                ...(at < stops.length - 1 ? [{ x: left(column) + own, y }] : []),
              ]);
              return (
                <path
                  key={`${line.from} ${line.to}`}
                  className={classes.line}
                  d={drawLine(points, GAP / 2)}
                  data-word={line.word}
                  data-way={line.way || undefined}
                  data-equal={!line.differs || undefined}
                  data-lit={line.from === lit || line.to === lit || undefined}
                />
              );
            })}
          </svg>
          {labels.map(({ gap, y, line }) => (
            <span
              key={`${line.from} ${line.to}`}
              className={classes.label}
              style={{ left: left(gap) + own + GAP / 2, top: y }}
              data-equal={!line.differs || undefined}
              data-way={line.way || undefined}
              data-testid="path-label"
              aria-hidden="true"
            >
              {line.error}
              <span className={classes.item}>{line.item}</span>
            </span>
          ))}
          {columns.map((column) => (
            <ul key={column} aria-label={columnWords(column, t)}>
              {plan.boxes
                .filter(({ box }) => layout.boxes.get(keyOf(box))?.column === column)
                .map(({ box, key }) => (
                  <li key={key}>
                    <button
                      type="button"
                      className={classes.box}
                      style={place(key, HEIGHT)}
                      tabIndex={key === focused ? 0 : -1}
                      aria-current={key === middle || undefined}
                      aria-describedby={`${id} ${key}`.replaceAll(" ", "-")}
                      title={box.module ? `${box.node.name}\n${box.module}` : box.node.name}
                      data-key={key}
                      data-node={box.node.name}
                      data-cls={markWord(box.node.cls, box.node.verdict)}
                      data-middle={key === middle || undefined}
                      data-way={box.place !== null || undefined}
                      onClick={() => select(box.node.address)}
                      onFocus={() => setFocused(key)}
                      onMouseEnter={() => setPointed(key)}
                      onMouseLeave={() => setPointed(null)}
                    >
                      <span className={classes.name}>
                        <ClassMark name={box.node.name} cls={box.node.cls} verdict={box.node.verdict} />
                        <span className={classes.short}>{shortCall(box.node.name)}</span>
                      </span>
                      <span className={classes.where}>
                        {box.node.direction === "backward" && (
                          <span className={classes.turn}>{t("comparison.backward")}</span>
                        )}
                        <span className={classes.module}>
                          <bdi dir="ltr">{box.module && shortModule(box.module)}</bdi>
                        </span>
                      </span>
                    </button>
                    <span id={`${id} ${key}`.replaceAll(" ", "-")} className="sr">
                      {box.place !== null && `${t("path.onWay")}. `}
                      {sentences(view, box.node.pair, t).join(" ")}
                    </span>
                  </li>
                ))}
              {plan.ends
                .filter(({ key }) => layout.boxes.get(key)?.column === column)
                .map(({ end, key }) => (
                  <li
                    key={key}
                    className={classes.end}
                    style={place(key, SMALL)}
                    title={endHelp(end, t)}
                    data-differs={differs(end) || undefined}
                    data-testid="path-end"
                  >
                    {end.word === "sent" && end.node !== null ? (
                      <button
                        type="button"
                        className="plain"
                        onClick={() => update({ rank: end.rank, node: end.node })}
                      >
                        {t("path.ends.sent", { rank: end.rank })}
                      </button>
                    ) : (
                      t(`path.ends.${end.word}`)
                    )}
                    {end.items > 1 && ` × ${end.items}`}
                  </li>
                ))}
              {plan.more
                .filter(({ key }) => layout.boxes.get(key)?.column === column)
                .map(({ more, key }) => (
                  <li key={key}>
                    <button
                      type="button"
                      className={classes.more}
                      style={place(key, SMALL)}
                      tabIndex={key === focused ? 0 : -1}
                      title={t("path.moreHint", { query: more.query })}
                      data-key={key}
                      data-testid="path-more"
                      onFocus={() => setFocused(key)}
                      onClick={() => update({ stage: null, filter: NO_FILTER, query: more.query })}
                    >
                      {t("path.more", { count: more.count })}
                    </button>
                  </li>
                ))}
            </ul>
          ))}
        </div>
      </section>
      <div className={classes.legend} aria-hidden="true">
        {(["way", "differs", "equal"] as const).map((word) => (
          <span key={word}>
            <svg width="22" height="8" aria-hidden="true">
              <path
                d="M0 4H22"
                className={classes.line}
                data-way={word === "way" || undefined}
                data-equal={word === "equal" || undefined}
              />
            </svg>
            {t(`path.lines.${word}`)}
          </span>
        ))}
      </div>
      <p className={classes.foot} data-testid="path-words" aria-hidden="true">
        {told && (
          <>
            <strong>{shortCall(told.node.name)}</strong>{" "}
            {sentences(view, told.node.pair, t).join(" ") || t("path.alone")}
          </>
        )}
      </p>
    </>
  );
}

/** What a screen reader calls the list of a step. */
function columnWords(column: number, t: Translate): string {
  if (column === 0) return t("path.middle");
  return t(column < 0 ? "path.before" : "path.after", { count: Math.abs(column) });
}
