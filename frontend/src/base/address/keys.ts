/** What keys do that more than one screen knows. A screen has more keys, for its panels: PanelKey. */
export type Action =
  | "nextNode"
  | "previousNode"
  | "nextBad"
  | "previousBad"
  | "nextOrigin"
  | "previousOrigin"
  | "firstOrigin"
  | "search"
  | "producer"
  | "consumer"
  | "parent"
  | "collapse"
  | "expand"
  | "previousRank"
  | "nextRank"
  | "previousStep"
  | "nextStep"
  | "plot1"
  | "plot2"
  | "plot3"
  | "plot4"
  | "plot5"
  | "plot6"
  | "plot7"
  | "plot8"
  | "plot9"
  | "export"
  | "copyLink"
  | "help"
  | "escape";

const ACTIONS: Readonly<Record<string, Action>> = {
  j: "nextNode",
  k: "previousNode",
  J: "nextBad",
  K: "previousBad",
  n: "nextOrigin",
  N: "previousOrigin",
  g: "firstOrigin",
  f: "firstOrigin",
  "/": "search",
  p: "producer",
  P: "consumer",
  u: "parent",
  h: "collapse",
  l: "expand",
  "[": "previousRank",
  "]": "nextRank",
  "{": "previousStep",
  "}": "nextStep",
  "1": "plot1",
  "2": "plot2",
  "3": "plot3",
  "4": "plot4",
  "5": "plot5",
  "6": "plot6",
  "7": "plot7",
  "8": "plot8",
  "9": "plot9",
  e: "export",
  c: "copyLink",
  "?": "help",
  Escape: "escape",
};

/** Actions as the palette lists them; Escape needs no list to be found in. */
export const LISTED: readonly Action[] = Object.entries(ACTIONS)
  .sort(([one], [other]) => Number(/\d/.test(one)) - Number(/\d/.test(other))) // an object gives its numbers first
  .map(([, action]) => action)
  .filter((action, place, all) => action !== "escape" && all.indexOf(action) === place);

/** The key of an action. */
export function keyOf(action: Action): string {
  return Object.keys(ACTIONS).find((key) => ACTIONS[key] === action) ?? "";
}

/** Keys as the help overlay lists them, before those of panels. */
export const KEY_HELP: readonly (readonly [keys: string, text: string])[] = [
  ["j k", "keys.node"],
  ["J K", "keys.bad"],
  ["n N", "keys.origin"],
  ["g f", "keys.firstOrigin"],
  ["p P", "keys.flow"],
  ["u", "keys.parent"],
  ["h l", "keys.tree"],
  ["[ ]", "keys.rank"],
  ["{ }", "keys.step"],
  ["/", "keys.search"],
  ["1 2 3 4 5 6 7 8 9", "keys.plots"],
  ["Shift-1 … 9", "keys.stage"],
  ["e", "keys.export"],
  ["c", "keys.copy"],
  ["Ctrl-K", "keys.palette"],
  ["?", "keys.help"],
  ["Esc", "keys.escape"],
];

/** The same, of the page of one dump. */
export const DUMP_KEY_HELP: typeof KEY_HELP = [
  ["j k", "keys.node"],
  ["n N", "keys.found"],
  ["g f", "keys.firstFound"],
  ["p", "keys.maker"],
  ["u", "keys.parent"],
  ["[ ]", "keys.rank"],
  ["{ }", "keys.step"],
  ["/", "keys.search"],
  ["1 2 3 4 5", "keys.plots"],
  ["c", "keys.copy"],
  ["?", "keys.help"],
  ["Esc", "keys.escapeSearch"],
];

/** The key that shows a panel of a screen. Its texts are `palette.actions.ID` and `keys.HELP`. */
export interface PanelKey {
  id: string;
  key: string;
  /** None: as `id`. */
  help?: string;
}

export interface Stroke {
  key: string;
  /** The key's place on the keyboard: `Digit1`. */
  code?: string;
  shiftKey?: boolean;
  ctrlKey: boolean;
  metaKey: boolean;
  altKey: boolean;
  isComposing?: boolean;
}

/** The key of a stroke; null while text is being typed or a browser shortcut is pressed. */
export function pressedKey(stroke: Stroke, typing: boolean): string | null {
  if (typing || stroke.ctrlKey || stroke.metaKey || stroke.altKey || stroke.isComposing) return null;
  return stroke.key;
}

/** The digit of a stroke with Shift, whatever sign it types; null where that sign is itself a key of the screen, or a digit. */
export function shiftedDigit(stroke: Stroke): number | null {
  const digit = /^Digit([1-9])$/.exec(stroke.code ?? "")?.[1];
  if (!digit || !stroke.shiftKey || stroke.key in ACTIONS) return null;
  return Number(digit);
}

/** The action that a key stroke asks for, as in `pressedKey`. */
export function keyAction(stroke: Stroke, typing: boolean): Action | null {
  const key = pressedKey(stroke, typing);
  return key === null ? null : (ACTIONS[key] ?? null);
}

interface Focusable {
  tagName: string;
  isContentEditable?: boolean;
  getAttribute(name: string): string | null;
}

const TEXTLESS_INPUTS = new Set(["checkbox", "radio", "button", "submit", "reset", "file", "range", "color"]);
const TYPING_ROLES = new Set([
  "textbox",
  "searchbox",
  "combobox",
  "listbox",
  "option",
  "menu",
  "menuitem",
  "spinbutton",
]);

/** True where a key stroke belongs to the focused element: text fields, selects, open lists and menus. */
export function isTyping(target: Focusable | null): boolean {
  if (!target) return false;
  const tag = target.tagName.toLowerCase();
  if (tag === "input") return !TEXTLESS_INPUTS.has((target.getAttribute("type") ?? "text").toLowerCase());
  if (tag === "textarea" || tag === "select" || target.isContentEditable) return true;
  return TYPING_ROLES.has(target.getAttribute("role") ?? "");
}
