import { readFileSync } from "node:fs";
import { join } from "node:path";
import openapiTS, { astToString } from "openapi-typescript";
import { expect, test } from "vitest";

const API = join(import.meta.dirname, "../src/api");

test("the types are those of the OpenAPI document beside them", async () => {
  const document = JSON.parse(readFileSync(join(API, "openapi.json"), "utf8"));
  const wanted = astToString(await openapiTS(document));
  const written = readFileSync(join(API, "schema.d.ts"), "utf8");
  expect(written.slice(written.indexOf("export interface paths")).trim()).toBe(
    wanted.slice(wanted.indexOf("export interface paths")).trim(),
  );
});
