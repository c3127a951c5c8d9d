import { beforeEach, expect, test, vi } from "vitest";
import zh from "../../../backend/dumpscope/texts/zh.json";

/** A sentence that no answer is said with: it comes with the rest. */
const LATE = [{ id: "rule.S-1", values: {} }];

/** The texts as a page has them that was just opened in Chinese. */
async function opened() {
  vi.resetModules();
  vi.stubGlobal("document", { documentElement: { lang: "" } });
  vi.stubGlobal("navigator", { language: "zh-CN" });
  vi.stubGlobal("window", { localStorage: { getItem: () => null } });
  const texts = await import("../../src/texts");
  const { watchTranslation } = await import("../../src/texts/translation");
  const { say } = await import("../../src/texts/serverTexts");
  await texts.startTexts();
  const told = vi.fn();
  watchTranslation(told);
  return { ...texts, say, told };
}

beforeEach(() => vi.unstubAllGlobals());

test("the rest of the texts draws nothing anew where none was missing", async () => {
  const { restOfTexts, told } = await opened();
  await Promise.all([restOfTexts(), restOfTexts(), restOfTexts()]);
  expect(told).not.toHaveBeenCalled();
});

test("a sentence that was shown in English is said anew, once for all parts that waited", async () => {
  const { restOfTexts, say, told } = await opened();
  expect(say("The shapes differ.", LATE)).toBe("The shapes differ.");
  await Promise.all([restOfTexts(), restOfTexts(), restOfTexts()]);
  expect(told).toHaveBeenCalledTimes(1);
  expect(say("The shapes differ.", LATE)).toBe(zh.said["rule.S-1"]);
});
