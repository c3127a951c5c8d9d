import { describe, expect, test } from "vitest";
import { ui as en } from "../../../../backend/dumpscope/texts/en.json";
import { isTyping, KEY_HELP, keyAction, shiftedDigit } from "../../../src/base/address/keys";
import { DIALOGS } from "../../../src/views/comparison/dialogs/dialogs";
import { SECTIONS } from "../../../src/views/comparison/panels/sections";

const stroke = (key: string, held: Partial<Record<"ctrlKey" | "metaKey" | "altKey", boolean>> = {}) => ({
  key,
  ctrlKey: false,
  metaKey: false,
  altKey: false,
  ...held,
});

const element = (tagName: string, attributes: Record<string, string> = {}, isContentEditable = false) => ({
  tagName,
  isContentEditable,
  getAttribute: (name: string) => attributes[name] ?? null,
});

describe("keys", () => {
  test("know a digit with Shift by its place, unless it types a digit or a key of the page", () => {
    const shifted = (key: string, code: string, shiftKey = true) => shiftedDigit({ ...stroke(key), code, shiftKey });
    expect(shifted("!", "Digit1")).toBe(1);
    expect(shifted('"', "Digit2")).toBe(2);
    expect(shifted("/", "Digit7")).toBeNull(); // German: the search
    expect(shifted("1", "Digit1")).toBeNull(); // French: a digit needs Shift
    expect(shifted("!", "Digit1", false)).toBeNull();
    expect(shifted(")", "Digit0")).toBeNull();
    expect(shiftedDigit(stroke("!"))).toBeNull();
  });

  test("tell capital letters from small ones", () => {
    expect(keyAction(stroke("j"), false)).toBe("nextNode");
    expect(keyAction(stroke("J"), false)).toBe("nextBad");
    expect(keyAction(stroke("n"), false)).toBe("nextOrigin");
    expect(keyAction(stroke("N"), false)).toBe("previousOrigin");
    expect(keyAction(stroke("p"), false)).toBe("producer");
    expect(keyAction(stroke("P"), false)).toBe("consumer");
  });

  test.each(["j", "J", "n", "/", "u", "[", "{", "1", "c", "?", "Escape"])("%s does nothing while typing", (key) => {
    expect(keyAction(stroke(key), false)).not.toBeNull();
    expect(keyAction(stroke(key), true)).toBeNull();
  });

  test("leave browser shortcuts alone", () => {
    expect(keyAction(stroke("c", { ctrlKey: true }), false)).toBeNull();
    expect(keyAction(stroke("n", { metaKey: true }), false)).toBeNull();
    expect(keyAction(stroke("1", { altKey: true }), false)).toBeNull();
  });

  test("leave an input method that is composing alone", () => {
    expect(keyAction({ ...stroke("n"), isComposing: true }, false)).toBeNull();
  });

  test("are all explained", () => {
    const panels = [...SECTIONS, ...DIALOGS];
    const explained = [...KEY_HELP.flatMap(([keys]) => keys.split(" ")), ...panels.map(({ key }) => key)];
    for (const key of [
      "j",
      "k",
      "J",
      "K",
      "n",
      "N",
      "/",
      "u",
      "[",
      "]",
      "{",
      "}",
      "1",
      "2",
      "3",
      "4",
      "5",
      "6",
      "7",
      "8",
      "9",
      "i",
      "s",
      "c",
      "?",
    ]) {
      expect(explained).toContain(key);
    }
    const texts: Record<string, string> = en.keys;
    for (const [, text] of KEY_HELP) expect(texts[text.replace("keys.", "")]).toBeTruthy();
    const commands: Record<string, string> = en.palette.actions;
    for (const { id, help } of panels.filter(({ key }) => key)) {
      expect(texts[help ?? id], id).toBeTruthy();
      expect(commands[id], id).toBeTruthy();
    }
  });

  test("of panels mean one thing each", () => {
    const keys = [...SECTIONS, ...DIALOGS].flatMap(({ key }) => key ?? []);
    expect(keys.length).toBeGreaterThan(8);
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of keys) expect(keyAction(stroke(key), false)).toBeNull();
  });
});

describe("typing", () => {
  test.each([
    element("INPUT"),
    element("INPUT", { type: "search" }),
    element("TEXTAREA"),
    element("SELECT"),
    element("DIV", {}, true),
    element("DIV", { role: "textbox" }),
    element("DIV", { role: "menu" }),
  ])("is what happens in a text field, a select or an open list", (target) => {
    expect(isTyping(target)).toBe(true);
  });

  test.each([
    element("BUTTON"),
    element("INPUT", { type: "checkbox" }),
    element("DIV", { role: "tree" }),
    element("DIV", { role: "grid" }),
    null,
  ])("is not what happens on a button, a tick box, the tree or the list", (target) => {
    expect(isTyping(target)).toBe(false);
  });
});
