import { expect, test } from "vitest";
import { parenthesize } from "../../bundling/plotly.ts";

const SCRIPT = `(function (root, factory) { root.made = factory(); }(this.page, () => {
"use strict";var Plotly=(()=>{var z=(e)=>()=>e(),one=z((()=>1));var two=z(()=>one()+1),three=[1].map((x)=>x);function late(){return z(()=>4)()}return {two,late,three}})();
return Plotly;
}));`;

test("each module of a bundle is read with the script, and does the same", () => {
  const { code, count } = parenthesize(SCRIPT);
  expect(count).toBe(4); // the factory, three functions handed to calls; not the one inside of a function
  expect(code).toContain("this.page, (() => {");
  expect(code).toContain("two=z((()=>one()+1))");
  expect(code).toContain("return z(()=>4)()");
  const page: { made?: { two: () => number; late: () => number; three: number[] } } = {};
  new Function(code).call({ page });
  expect([page.made?.two(), page.made?.late(), page.made?.three]).toEqual([2, 4, [1]]);
});
