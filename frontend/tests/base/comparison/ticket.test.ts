import { expect, test } from "vitest";
import { type Ticket, writeTicket } from "../../../src/base/comparison/ticket";

const leaf = {
  dtype: "torch.float32",
  type: null,
  shape: [2, 3],
  max: 1,
  min: 0,
  mean: 0.5,
  norm: "nan",
  md5: null,
  value: null,
};
const frame = { line: 3, function: "forward", code: "x = a|b", text: "" };
const TICKET: Ticket = {
  title: "Tensor.__add__.0.forward: origin, No",
  paragraph: "Both inputs are equal. output 0 differs.",
  facts: [
    ["target", "npu`1"],
    ["policy", ""],
  ],
  frames: [
    { ...frame, file: "/lib/torch/nn/linear.py", own: false },
    { ...frame, file: "/home/me/model.py", own: true },
  ],
  source: { language: "python", lines: ["  2  y = 1", "> 3  x = a|b  # ```"] },
  items: [{ name: "output.0", target: leaf, golden: { ...leaf, max: 2 }, score: 32.14 }],
  link: "http://host/comparisons/a?n=Tensor.__add__.0.forward",
  picture: { name: "Histogram", file: "Tensor.__add__.0.forward Histogram.png" },
};
const WORDS = {
  stack: "Call stacks",
  source: "Source",
  framework: (count: number) => `… ${count} more`,
  numbers: "Inputs and outputs",
  item: "Item",
  side: "Side",
  floors: "× floor",
  target: "target",
  golden: "golden",
  open: "Open",
};

test("a ticket holds paragraph, stack with the user's lines first, source, numbers, picture and link", () => {
  expect(writeTicket(TICKET, WORDS)).toBe(
    `## Tensor.\\_\\_add\\_\\_.0.forward: origin, No

Both inputs are equal. output 0 differs.

* target: \`\`npu\`1\`\`

### Call stacks

\`\`\`
/home/me/model.py:3 in forward: x = a|b
… 1 more
\`\`\`

### Source

\`\`\`\`python
  2  y = 1
> 3  x = a|b  # \`\`\`
\`\`\`\`

### Inputs and outputs

| Item | Side | Max | Min | Mean | Norm | × floor |
| --- | --- | ---: | ---: | ---: | ---: | ---: |
| output.0 float32 [2,3] | target | 1 | 0 | 0.5 | NaN | 32.1 |
|  | golden | 2 | 0 | 0.5 | NaN |  |

![Histogram](<Tensor.\\_\\_add\\_\\_.0.forward Histogram.png>)

[Open](<http://host/comparisons/a?n=Tensor.__add__.0.forward>)
`.replace("Tensor.\\_\\_add\\_\\_.0.forward Histogram.png", "Tensor.__add__.0.forward Histogram.png"),
  );
});

test("what is not there leaves no heading behind", () => {
  const text = writeTicket({ ...TICKET, frames: [], source: null, items: [], facts: [], picture: null }, WORDS);
  expect(text.match(/^#+ /gm)).toHaveLength(1);
});
