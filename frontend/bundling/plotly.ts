/**
 * plotly.js, told to the browser as a script all of which runs at once. It is one function that holds some six hundred modules as
 * functions, each handed to a call. A browser skips over a function until it is called and reads it again then: here each module twice, and all
 * of them once more, while the page waits. A function in parentheses is read with the script, which is not done on the page's own thread.
 * Of 305 ms to start plotly.js on it 190 remain (Chromium 150), and all threads together compute a quarter less.
 */
import { type Plugin, parseAst } from "vite";

interface Node {
  type: string;
  start: number;
  end: number;
  expression?: Node;
  callee?: Node;
  arguments?: Node[];
  body?: Node | Node[];
  declarations?: { init: Node | null }[];
}

/** Fewer modules than this are no plotly.js. */
const LEAST = 300;

export function eagerPlotly(): Plugin {
  return {
    name: "eager-plotly",
    generateBundle(_options, bundle) {
      for (const file of Object.values(bundle)) {
        if (file.type !== "asset" || !/(^|\/)plotly-[^/]*\.js$/.test(file.fileName)) continue;
        const { code, count } = parenthesize(String(file.source));
        if (count < LEAST) this.error(`${file.fileName}: ${count} modules found, its form is another one`);
        file.source = code;
      }
    },
  };
}

/** The script with parentheses around functions that are handed to calls, in its outermost functions; count: their number */
export function parenthesize(code: string): { code: string; count: number } {
  const spots = handed(parseAst(code) as unknown as Node).map(({ start, end }) => [start, end] as const);
  const cuts = [...new Set(spots.flat())].sort((one, other) => one - other);
  const starts = new Set(spots.map(([start]) => start));
  let from = 0;
  let whole = "";
  for (const at of cuts) {
    whole += code.slice(from, at) + (starts.has(at) ? "(" : ")");
    from = at;
  }
  return { code: whole + code.slice(from), count: spots.length };
}

/** Functions that are handed to a call by the statements of a body, or by those of a function that is called there. */
function handed(body: Node): Node[] {
  const statements = Array.isArray(body.body) ? body.body : [];
  return statements.flatMap(callsIn).flatMap((call) => {
    const own = (call.arguments ?? []).map(bare).filter(isFunction);
    const called = [bare(call.callee), ...(isFunction(bare(call.callee)) ? own : [])].filter(isFunction);
    return [...own, ...called.flatMap((one) => handed(one.body as Node))];
  });
}

function callsIn(statement: Node): Node[] {
  const parts = [statement.expression, ...(statement.declarations ?? []).map(({ init }) => init)];
  return parts.map(bare).filter((part): part is Node => part?.type === "CallExpression");
}

function isFunction(node: Node | undefined): node is Node {
  return node?.type === "ArrowFunctionExpression" || node?.type === "FunctionExpression";
}

function bare(node: Node | null | undefined): Node | undefined {
  return node?.type === "ParenthesizedExpression" ? bare(node.expression) : (node ?? undefined);
}
