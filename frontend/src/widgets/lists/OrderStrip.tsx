import { useComputedColorScheme } from "@mantine/core";
import { type KeyboardEvent, type PointerEvent, type RefObject, useEffect, useRef, useState } from "react";
import type { Strip, StripBucket } from "../../api/types";
import { CLASSES, type ClassWord, toClass } from "../../base/comparison/verdicts";
import { bucketAt, bucketHeight, bucketLeft, findBucket, spreadMarks } from "../../base/lists/stripBuckets";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./OrderStrip.module.css";

const HEIGHT = 34;
const DRAG_PIXELS = 4;

export interface StripMark {
  number: number;
  order: number;
  label: string;
  current: boolean;
  onPick: () => void;
  /** The mouse or the focus is on it. */
  onPoint: (on: boolean) => void;
}

interface OrderStripProps {
  box: RefObject<HTMLDivElement | null>;
  width: number;
  strip: Strip | undefined;
  /** Place in call order of the selected node. */
  selected: number | null;
  range: [number, number] | null;
  /** Calls that the strip carries a number at. */
  marks?: readonly StripMark[];
  /** First and last bucket of each run of buckets that are tinted, and what that says. */
  tint?: readonly (readonly number[])[] | undefined;
  tintWords?: string | undefined;
  onPick: (bucket: StripBucket) => void;
  onRange: (range: [number, number] | null) => void;
}

/** The whole run in one line: a bucket a pixel, the worst class of a bucket wins, so one bad call in 100 000 stays visible. */
export function OrderStrip(props: OrderStripProps) {
  const { box, width, strip, selected, range, marks = [], tint, tintWords, onPick, onRange } = props;
  const { t } = useTranslation();
  const colorScheme = useComputedColorScheme("light", { getInitialValueInEffect: false });
  const canvas = useRef<HTMLCanvasElement>(null);
  const [drag, setDrag] = useState<{ from: number; to: number } | null>(null);
  const [hover, setHover] = useState(-1);
  const buckets = strip?.buckets ?? [];
  const count = buckets.length;
  const at = selected === null ? -1 : findBucket(selected, buckets);
  const divider = strip?.backward == null ? -1 : findBucket(strip.backward, buckets);

  // biome-ignore lint/correctness/useExhaustiveDependencies: colours are read from the page, which follows the scheme
  useEffect(() => {
    const element = canvas.current;
    if (!element || width <= 0) return;
    draw(element, width, buckets, tint ?? []);
  }, [strip, width, colorScheme, tint]);

  const x = (event: PointerEvent) => event.clientX - (canvas.current?.getBoundingClientRect().left ?? 0);
  const down = (event: PointerEvent<HTMLDivElement>) => {
    if (event.button !== 0 || count === 0) return;
    event.currentTarget.setPointerCapture(event.pointerId);
    setDrag({ from: x(event), to: x(event) });
  };
  const moved = (event: PointerEvent) => {
    setHover(bucketAt(x(event), count, width));
    if (drag) setDrag({ from: drag.from, to: x(event) });
  };
  const up = (event: PointerEvent) => {
    if (!drag) return;
    setDrag(null);
    const from = bucketAt(Math.min(drag.from, x(event)), count, width);
    const to = bucketAt(Math.max(drag.from, x(event)), count, width);
    const [left, right] = [buckets[from], buckets[to]];
    if (!left || !right) return;
    if (Math.abs(drag.from - x(event)) < DRAG_PIXELS) onPick(left);
    else onRange([left.first, right.last]);
  };

  const press = (event: KeyboardEvent) => {
    const steps: Record<string, number> = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: count - 1 };
    const next = steps[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const bucket = buckets[Math.max(0, Math.min(count - 1, next))];
    if (bucket) onPick(bucket);
  };

  const told = buckets[hover] ?? buckets[at];
  const text = told
    ? t("comparison.stripValue", {
        first: told.first,
        last: told.last,
        cls: t(`classes.${toClass(told.cls)}`),
      })
    : t("comparison.strip");
  const rangeLeft = range ? findBucket(range[0], buckets) : -1;
  const rangeRight = range ? findBucket(range[1], buckets) : -1;
  const left = (index: number) => bucketLeft(index, Math.max(1, count), width);

  return (
    <div ref={box} className={classes.box} data-testid="strip">
      <div
        className={classes.strip}
        role="slider"
        tabIndex={0}
        aria-label={t("comparison.strip")}
        aria-orientation="horizontal"
        aria-valuemin={0}
        aria-valuemax={Math.max(0, (strip?.total ?? 1) - 1)}
        aria-valuenow={selected ?? 0}
        aria-valuetext={text}
        title={`${text}\n${t("comparison.stripHint")}`}
        style={{ height: HEIGHT }}
        data-tinted={tint?.reduce((sum, [first = 0, last = 0]) => sum + last - first + 1, 0)}
        onPointerDown={down}
        onPointerMove={moved}
        onPointerUp={up}
        onPointerCancel={() => setDrag(null)}
        onPointerLeave={() => setHover(-1)}
        onKeyDown={press}
      >
        <canvas ref={canvas} className={classes.canvas} />
        {divider > 0 && (
          <span className={classes.divider} style={{ left: left(divider) }}>
            <span className={classes.forward}>{t("comparison.forward")}</span>
            <span className={classes.backward}>{t("comparison.backward")}</span>
          </span>
        )}
        {range && rangeLeft >= 0 && (
          <>
            <span className={classes.shade} style={{ left: 0, width: left(rangeLeft) }} />
            <span
              className={classes.shade}
              style={{ left: left((rangeRight < 0 ? count - 1 : rangeRight) + 1), right: 0 }}
            />
          </>
        )}
        {at >= 0 && (
          <span
            className={classes.cursor}
            style={{ left: left(at), width: Math.max(2, left(at + 1) - left(at)) }}
            data-order={selected}
          />
        )}
        {drag && Math.abs(drag.to - drag.from) >= DRAG_PIXELS && (
          <span
            className={classes.brush}
            style={{ left: Math.min(drag.from, drag.to), width: Math.abs(drag.to - drag.from) }}
          />
        )}
      </div>
      {marks.length > 0 && count > 0 && (
        <MarkRow marks={marks} place={(order) => left(Math.max(0, findBucket(order, buckets)))} width={width} />
      )}
      {tintWords && <span className="sr">{tintWords}</span>}
    </div>
  );
}

const MARK = 15;

interface MarkRowProps {
  marks: readonly StripMark[];
  place: (order: number) => number;
  width: number;
}

/** Numbers at the foot of the strip; of those that would cover each other the later ones stand beside. */
function MarkRow({ marks, place, width }: MarkRowProps) {
  const lefts = spreadMarks(
    marks.map((mark) => place(mark.order)),
    MARK,
    width,
  );
  return marks.map((mark, index) => (
    <button
      key={mark.number}
      type="button"
      className={`plain ${classes.mark}`}
      style={{ left: lefts[index] }}
      aria-label={mark.label}
      title={mark.label}
      aria-current={mark.current || undefined}
      onClick={mark.onPick}
      onMouseEnter={() => mark.onPoint(true)}
      onMouseLeave={() => mark.onPoint(false)}
      onFocus={() => mark.onPoint(true)}
      onBlur={() => mark.onPoint(false)}
      data-testid="strip-mark"
    >
      {mark.number}
    </button>
  ));
}

type Runs = readonly (readonly number[])[];

function draw(canvas: HTMLCanvasElement, width: number, buckets: readonly StripBucket[], tint: Runs): void {
  const scale = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * scale);
  canvas.height = Math.round(HEIGHT * scale);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${HEIGHT}px`;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  pen.scale(scale, scale);
  pen.clearRect(0, 0, width, HEIGHT);
  const style = getComputedStyle(document.documentElement);
  const colours = Object.fromEntries(
    CLASSES.map((cls) => [cls, style.getPropertyValue(`--fill-${cls}`).trim()]),
  ) as Record<ClassWord, string>;
  const order = [...buckets.keys()].sort(
    (a, b) => bucketHeight(buckets[a]?.cls ?? "") - bucketHeight(buckets[b]?.cls ?? ""),
  );
  const wide = width / Math.max(1, buckets.length) >= 4;
  pen.fillStyle = style.getPropertyValue("--reach").trim();
  for (const [first = 0, last = 0] of tint) {
    const start = bucketLeft(first, buckets.length, width);
    pen.fillRect(start, 0, Math.max(1, bucketLeft(last + 1, buckets.length, width) - start), HEIGHT);
  }
  // The worst are drawn last: they may be widened to stay visible and nothing may cover them.
  for (const index of order) {
    const cls = toClass(buckets[index]?.cls);
    const left = bucketLeft(index, buckets.length, width);
    const right = bucketLeft(index + 1, buckets.length, width);
    const tall = bucketHeight(cls);
    const least = tall === 1 ? 3 : 1;
    pen.fillStyle = colours[cls];
    pen.fillRect(left, HEIGHT * (1 - tall), Math.max(least, right - left - (wide ? 1 : 0)), HEIGHT * tall);
  }
}
