/** Lines of source around a call, of one side or of both, as rows of a table and as the text of a ticket. */

export type RowKind = "plain" | "same" | "changed" | "target" | "golden";

export interface SourceText {
  number: number;
  text: string;
}

export interface CodeRow {
  kind: RowKind;
  /** The line that made the call. */
  at: boolean;
  target: SourceText | null;
  golden: SourceText | null;
}

const SIDES = ["target", "golden"] as const;

/** The sign beside a row, as in a diff of the golden against the target. */
export const ROW_SIGNS: Readonly<Record<RowKind, string>> = {
  plain: "",
  same: "",
  changed: "~",
  target: "+",
  golden: "−",
};

/** Whether the sides need a column each. */
export function inColumns(rows: readonly CodeRow[]): boolean {
  return rows.some((row) => row.kind !== "same" && row.kind !== "plain");
}

/** How many rows are not the same on both sides. */
export function countDifferences(rows: readonly CodeRow[]): number {
  return rows.filter((row) => row.kind !== "same" && row.kind !== "plain").length;
}

/** The line to show where a row has one column. */
export function onlyText(row: CodeRow): SourceText {
  const text = row.target ?? row.golden;
  if (text === null) throw new Error("a row holds at least one line");
  return text;
}

/** The same rows without the indent that all of their lines share. */
export function dedent(rows: readonly CodeRow[]): CodeRow[] {
  const indents = rows.flatMap((row) =>
    SIDES.flatMap((side) => (row[side]?.text.trim() ? [/^[ \t]*/.exec(row[side].text)?.[0] ?? ""] : [])),
  );
  const shared = indents.reduce((one, other) => common(one, other), indents[0] ?? "").length;
  const cut = (line: SourceText | null) => line && { ...line, text: line.text.slice(shared) };
  return rows.map((row) => ({ ...row, target: cut(row.target), golden: cut(row.golden) }));
}

function common(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length += 1;
  return one.slice(0, length);
}

/** The line of the call and so many lines around it, as Markdown fences hold them; a diff if the sides differ there. */
export function snippet(rows: readonly CodeRow[], around: number): { language: "python" | "diff"; lines: string[] } {
  const at = rows.findIndex((row) => row.at);
  const near = dedent(rows.slice(Math.max(0, at - around), at + around + 1));
  if (!inColumns(near)) {
    const width = Math.max(0, ...near.map((row) => String(onlyText(row).number).length));
    const mark = (row: CodeRow) => `${row.at ? ">" : " "} ${String(onlyText(row).number).padStart(width)}  `;
    return { language: "python", lines: near.map((row) => `${mark(row)}${onlyText(row).text}`.trimEnd()) };
  }
  const lines = near.flatMap((row) => {
    if (row.kind === "same") return [` ${onlyText(row).text}`];
    const own = row.golden ? [`-${row.golden.text}`] : [];
    return row.target ? [...own, `+${row.target.text}`] : own;
  });
  return { language: "diff", lines: lines.map((line) => line.trimEnd()) };
}
