import { expect, test } from "vitest";
import { type Phrase, render } from "../../../src/base/text/phrases";

const templates = { all: "{parts}。", part: "{name} 为 {value}", bare: "好。" };

test("sentences are filled in and enumerations joined", () => {
  const parts: Phrase[] = [
    { id: "part", values: { name: "Max", value: 3 } },
    { id: "part", values: { name: "Min", value: "nan" } },
  ];
  const said: Phrase[] = [
    { id: "all", values: { parts } },
    { id: "bare", values: {} },
  ];
  expect(render(said, templates, "，")).toBe("Max 为 3，Min 为 nan。好。");
});

test("a value is never read as a template", () => {
  expect(render([{ id: "part", values: { name: "{value}", value: "$& {name}" } }], templates, "，")).toBe(
    "{value} 为 $& {name}",
  );
});

test("a sentence without template is not half translated", () => {
  expect(
    render(
      [
        { id: "bare", values: {} },
        { id: "new", values: {} },
      ],
      templates,
      "，",
    ),
  ).toBeNull();
  expect(render([{ id: "all", values: { parts: [{ id: "new", values: {} }] } }], templates, "，")).toBeNull();
});
