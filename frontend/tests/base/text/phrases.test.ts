import { expect, test } from "vitest";
import { type Phrase, renderPhrases } from "../../../src/base/text/phrases";

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
  expect(renderPhrases(said, templates, "，")).toBe("Max 为 3，Min 为 nan。好。");
});

test("a value is never read as a template", () => {
  expect(renderPhrases([{ id: "part", values: { name: "{value}", value: "$& {name}" } }], templates, "，")).toBe(
    "{value} 为 $& {name}",
  );
});

test("a sentence without template is not half translated", () => {
  expect(
    renderPhrases(
      [
        { id: "bare", values: {} },
        { id: "new", values: {} },
      ],
      templates,
      "，",
    ),
  ).toBeNull();
  expect(renderPhrases([{ id: "all", values: { parts: [{ id: "new", values: {} }] } }], templates, "，")).toBeNull();
});

test("a sentence that counts has a form for one, and a brace that is meant is written twice", () => {
  const counted = { kept_one: "{count} record", kept_other: "{count} records", form: "write {{a: {value}}}" };
  const kept = (count: number): Phrase[] => [{ id: "kept", values: { count } }];
  expect(renderPhrases(kept(1), counted, ", ")).toBe("1 record");
  expect(renderPhrases(kept(3), counted, ", ")).toBe("3 records");
  expect(renderPhrases([{ id: "form", values: { value: 2 } }], counted, ", ")).toBe("write {a: 2}");
});
