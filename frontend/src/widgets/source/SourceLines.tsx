import { type CSSProperties, type ReactNode, useLayoutEffect, useMemo, useRef, useState } from "react";
import type { Source, SourceSide } from "../../api/types";
import {
  type CodeRow,
  countDifferences,
  dedent,
  inColumns,
  onlyText,
  ROW_SIGNS,
  type SourceText,
} from "../../base/comparison/sourceRows";
import { say } from "../../texts/serverTexts";
import { useTranslation } from "../../texts/useTranslation";
import { followWidth } from "../basic/sizes";
import classes from "./SourceLines.module.css";

interface SourceLinesProps {
  source: Source;
  /** The lines are those of the call before: their room is kept, and they are not shown. */
  stale?: boolean;
  /** One dump and not two. */
  alone?: boolean;
  /** The call is where a difference began. */
  origin?: boolean;
}

/** Pixels from which two columns can be read. */
const followRoom = followWidth(400);

/** The source around the line that made a call: one column, or two where the sides differ; nothing where there is none. */
export function SourceLines({ source, stale = false, alone = false, origin = false }: SourceLinesProps) {
  const { t } = useTranslation();
  const [whole, setWhole] = useState(false);
  const box = useRef<HTMLElement>(null);
  const rows = useMemo(() => dedent(source.rows), [source]);
  useLayoutEffect(() => {
    const shown = box.current;
    if (rows.length === 0 || whole || !shown) return;
    showCall(shown);
    // On a phone the panel may be hidden when its lines arrive.
    let hidden = shown.clientHeight === 0;
    const observer = new ResizeObserver(() => {
      if (hidden && shown.clientHeight > 0) showCall(shown);
      hidden = shown.clientHeight === 0;
    });
    observer.observe(shown);
    return () => observer.disconnect();
  }, [rows, whole]);
  if (rows.length === 0) return null;
  const sides = namedSides(source);
  const sameNote = sides.every(({ found }) => found.text === sides[0]?.found.text);
  const columns = inColumns(rows);
  const digits = Math.max(
    ...rows.map((row) => String(Math.max(row.target?.number ?? 0, row.golden?.number ?? 0)).length),
  );
  const alike = source.same ? t(source.whole === false ? "source.sameHere" : "source.same") : "";
  const lone = alone || source.same ? undefined : sides.find(({ found }) => found.now !== null)?.side;
  const all = (
    <button
      type="button"
      className={`plain ${classes.fold} ${classes.all}`}
      aria-expanded={whole}
      onClick={() => setWhole(!whole)}
      data-testid="source-all"
    >
      {whole ? `▾ ${t("source.fewer")}` : `▸ ${t("source.all", { count: rows.length })}`}
    </button>
  );
  return (
    <div
      ref={followRoom}
      className={classes.source}
      data-testid="source"
      data-stale={stale || undefined}
      aria-busy={stale}
    >
      {(sameNote ? sides.slice(0, 1) : sides).map(({ side, found }) => (
        <SideNote key={side} label={alone || sameNote ? "" : t(`comparison.${side}`)} found={found} />
      ))}
      <section
        ref={box}
        className={classes.box}
        data-whole={whole || undefined}
        aria-label={t("source.region")}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which must be possible by keyboard too
        tabIndex={0}
      >
        <div className={classes.strip} data-columns={columns || undefined}>
          {columns ? (
            <>
              <span>{t("comparison.target")}</span>
              <span className={classes.end}>
                <span className={classes.label}>{t("comparison.golden")}</span>
                <span className={classes.differ}>{t("source.differ", { count: countDifferences(rows) })}</span>
                {all}
              </span>
            </>
          ) : (
            <span className={classes.end}>
              <strong>{t("source.around")}</strong>
              <span>{lone ? t(`comparison.${lone}`) : alike}</span>
              {all}
            </span>
          )}
        </div>
        <table
          className={classes.lines}
          data-columns={columns ? 2 : 1}
          data-origin={origin || undefined}
          style={{ "--digits": `${digits}ch` } as CSSProperties}
        >
          <thead className="sr">
            <tr>
              {columns ? (
                sides.map(({ side }) => (
                  <th key={side} scope="col">
                    {t(`comparison.${side}`)}
                  </th>
                ))
              ) : (
                <th scope="col">{t("source.around")}</th>
              )}
            </tr>
          </thead>
          <tbody>
            {rows.map((row) => (
              <Row key={`${row.target?.number}/${row.golden?.number}`} row={row} columns={columns} />
            ))}
          </tbody>
        </table>
      </section>
    </div>
  );
}

function Row({ row, columns }: { row: CodeRow; columns: boolean }) {
  return (
    <tr className={classes.row} data-kind={row.kind} data-at={row.at || undefined}>
      {columns ? (
        <>
          <Cell row={row} line={row.target} side="target" />
          <Cell row={row} line={row.golden} side="golden" />
        </>
      ) : (
        <Cell row={row} line={onlyText(row)} side="target" />
      )}
    </tr>
  );
}

function Cell({ row, line, side }: { row: CodeRow; line: SourceText | null; side: "target" | "golden" }) {
  const { t } = useTranslation();
  if (line === null) return <td className={classes.cell} data-side={side} data-empty />;
  const indent = /^[ \t]*/.exec(line.text)?.[0] ?? "";
  const word = row.kind === "plain" || row.kind === "same" ? "" : t(`source.mark.${row.kind}`);
  return (
    <td className={classes.cell} data-side={side} data-label={t(`comparison.${side}`)}>
      <div className={classes.line}>
        <span className={classes.number}>
          <span className="sr">{t("source.line")} </span>
          {line.number}
        </span>
        <span className={classes.sign} title={row.at ? t("source.call") : word}>
          <span aria-hidden="true">{row.at ? "►" : ROW_SIGNS[row.kind]}</span>
          <span className="sr">{[row.at ? t("source.call") : "", word].filter(Boolean).join(", ")}</span>
        </span>
        <code className={classes.code} style={{ "--indent": indent.length } as CSSProperties}>
          <span className={classes.indent}>{indent}</span>
          {line.text.slice(indent.length) || " "}
        </code>
      </div>
    </td>
  );
}

/** Where a text comes from and what may be wrong with it, or why there is none. */
function SideNote({ label, found }: { label: string; found: SourceSide }) {
  if (found.said.length === 0) return null;
  return (
    <p className={classes.note} data-state={found.state} data-testid="source-note">
      {label && <strong>{label}: </strong>}
      {(found.matches === false || found.changed) && <span aria-hidden="true">⚠ </span>}
      {say(found.text, found.said)}
    </p>
  );
}

/** Why there is no source and how to get it: a button for the end of a line, and the words that it opens. */
export function useNoSource(source: Source | undefined, alone = false): { button: ReactNode; words: ReactNode } {
  const { t } = useTranslation();
  const [open, setOpen] = useState(false);
  const told = source?.rows.length === 0 ? namedSides(source) : [];
  const [first] = told;
  if (first === undefined) return { button: null, words: null };
  const alike = told.every(({ found }) => found.text === first.found.text);
  return {
    button: (
      <button
        type="button"
        className={`plain ${classes.fold}`}
        aria-expanded={open}
        onClick={() => setOpen(!open)}
        data-testid="source-none"
      >
        {open ? "▾" : "▸"} {t("source.none")}
      </button>
    ),
    words: open && (
      <div data-testid="source-why">
        {(alike ? [first] : told).map(({ side, found }) => (
          <p key={side} className={classes.note}>
            {!alone && !alike && <strong>{t(`comparison.${side}`)}: </strong>}
            {say(found.text, found.said)}
          </p>
        ))}
      </div>
    ),
  };
}

function namedSides(source: Source): { side: "target" | "golden"; found: SourceSide }[] {
  return (["target", "golden"] as const).flatMap((side) => {
    const found = source[side];
    return found === null ? [] : [{ side, found }];
  });
}

/** Scrolls the line of the call to the middle of the box, a long one to its beginning, and nothing else. */
function showCall(box: HTMLElement): void {
  const row = box.querySelector<HTMLElement>("[data-at]");
  if (!row) return;
  const strip = box.firstElementChild instanceof HTMLElement ? box.firstElementChild.offsetHeight : 0;
  const room = box.clientHeight - strip;
  const top = row.getBoundingClientRect().top - box.getBoundingClientRect().top - box.clientTop - strip;
  box.scrollTop += top - Math.max(0, (room - row.offsetHeight) / 2);
}
