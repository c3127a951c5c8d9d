import { beforeEach, expect, test, vi } from "vitest";
import { ui as en } from "../../../backend/dumpscope/texts/en.json";
import { ui as zh } from "../../../backend/dumpscope/texts/zh.json";
import { addTexts } from "../../src/texts/catalogues";
import { currentTranslation, isText, speak, translate, watchTranslation } from "../../src/texts/translation";

beforeEach(() => {
  vi.stubGlobal("document", { documentElement: { lang: "" } });
  addTexts("en", { ui: en });
  speak("en");
});

test("values stand in their places, and what is not given is left out", () => {
  expect(translate("home.fileChanged", { path: "a/{b}.pt" })).toContain("a/{b}.pt");
  expect(translate("home.fileChanged", { path: null })).not.toMatch(/null|\{/);
});

test("a text that the other language lacks is English, and a word without text is known as such", () => {
  const english = translate("app.skip");
  speak("zh"); // of which nothing is here yet
  expect(translate("app.skip")).toBe(english);
  expect(isText("app.skip")).toBe(true);
  expect(isText("app.nothing")).toBe(false);
});

test("a count chooses the plural form that the language has", () => {
  expect(translate("home.refused", { count: 1 })).not.toBe(translate("home.refused", { count: 2 }).replace("2", "1"));
  addTexts("zh", { ui: zh });
  speak("zh");
  expect(translate("home.refused", { count: 1 })).toBe(zh.home.refused_other.replace("{count}", "1"));
});

test("who watches is told of another language", () => {
  const told = vi.fn();
  const leave = watchTranslation(told);
  const before = currentTranslation();
  speak("zh");
  expect(told).toHaveBeenCalledTimes(1);
  expect(currentTranslation()).not.toBe(before);
  expect(currentTranslation().language).toBe("zh");
  expect(document.documentElement.lang).toBe("zh");
  leave();
  speak("en");
  expect(told).toHaveBeenCalledTimes(1);
});
