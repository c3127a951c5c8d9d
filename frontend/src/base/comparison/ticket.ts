/** One call as the text of a ticket, in Markdown. */
import { formatReal, type Real } from "../numbers/format";
import { describeType, type LeafValues, STATISTICS } from "./leaves";
import type { Frame } from "./stackFrames";

export interface TicketItem {
  name: string;
  target: LeafValues | null;
  golden: LeafValues | null;
  /** In floors. */
  score: Real;
}

export interface Ticket {
  title: string;
  /** Lines of what was compared, each a name and a value. */
  facts: readonly (readonly [name: string, value: string])[];
  paragraph: string;
  /** Innermost first. */
  frames: readonly Frame[];
  /** Lines around the call's own; none: no source is known. */
  source: { language: string; lines: readonly string[] } | null;
  items: readonly TicketItem[];
  /** None: the page stands in a file, which others have elsewhere. */
  link: string | null;
  /** The plot: its name, and the file that its own button saves. */
  picture: { name: string; file: string } | null;
}

export interface TicketWords {
  stack: string;
  source: string;
  framework: (count: number) => string;
  numbers: string;
  item: string;
  side: string;
  floors: string;
  target: string;
  golden: string;
  open: string;
}

const FRAMES = 12;
const ITEMS = 8;

/** The user's own lines come first; what a framework adds is only counted. */
export function writeTicket(ticket: Ticket, words: TicketWords): string {
  const parts = [`## ${escapeText(ticket.title)}`, escapeText(ticket.paragraph)];
  const facts = ticket.facts.filter(([, value]) => value !== "");
  if (facts.length > 0) parts.push(facts.map(([name, value]) => `* ${escapeText(name)}: ${code(value)}`).join("\n"));
  if (ticket.frames.length > 0) parts.push(`### ${words.stack}`, writeStack(ticket.frames, words));
  if (ticket.source) parts.push(`### ${words.source}`, fenced(ticket.source.lines, ticket.source.language));
  if (ticket.items.length > 0) parts.push(`### ${words.numbers}`, writeNumbers(ticket.items, words));
  if (ticket.picture)
    parts.push(`![${escapeText(ticket.picture.name)}](<${ticket.picture.file.replace(/[<>\n]/g, "_")}>)`);
  if (ticket.link !== null) parts.push(`[${words.open}](<${ticket.link}>)`);
  return `${parts.join("\n\n")}\n`;
}

function writeStack(frames: readonly Frame[], words: TicketWords): string {
  const own = frames.filter((frame) => frame.own);
  const shown = (own.length > 0 ? own : frames).slice(0, FRAMES);
  const lines = shown.map((frame) =>
    frame.line === null
      ? frame.text
      : `${frame.file}:${frame.line} in ${frame.function}${frame.code ? `: ${frame.code}` : ""}`,
  );
  const left = frames.length - shown.length;
  return fenced([...lines, ...(left > 0 ? [words.framework(left)] : [])]);
}

/** Lines as they are; a fence is longer than any run of its sign inside. */
function fenced(lines: readonly string[], language = ""): string {
  const fence = "`".repeat(Math.max(3, ...lines.map((line) => longestTicks(line) + 1)));
  return [`${fence}${language}`, ...lines, fence].join("\n");
}

function writeNumbers(items: readonly TicketItem[], words: TicketWords): string {
  const head = [words.item, words.side, "Max", "Min", "Mean", "Norm", words.floors];
  const rows = items.slice(0, ITEMS).flatMap((item) =>
    (["target", "golden"] as const).map((side) => {
      const leaf = item[side];
      const numbers = STATISTICS.map((name) => (leaf ? formatReal(leaf[name]) : ""));
      const first = side === "target" ? `${item.name} ${describeType(leaf ?? item.golden)}` : "";
      return [first, words[side], ...numbers, side === "target" ? formatReal(item.score, 3) : ""];
    }),
  );
  const line = (cells: readonly string[]) => `| ${cells.map(escapeCell).join(" | ")} |`;
  return [line(head), line(head.map((_, place) => (place < 2 ? "---" : "---:"))), ...rows.map(line)].join("\n");
}

/** Signs that Markdown would read as marks; a name such as __add__ would turn bold. */
function escapeText(text: string): string {
  return text.replace(/[\\`*_<>#|]/g, (sign) => `\\${sign}`).replace(/\n/g, " ");
}

function escapeCell(text: string): string {
  return /^:?-+:?$/.test(text) ? text : escapeText(text);
}

function code(text: string): string {
  const fence = "`".repeat(longestTicks(text) + 1);
  return `${fence}${text.replace(/\n/g, " ")}${fence}`;
}

function longestTicks(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}
