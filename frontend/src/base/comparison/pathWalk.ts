/** Where an arrow key goes from a box of the path view. */

export interface WalkBox {
  key: string;
  column: number;
  top: number;
}

export interface WalkLine {
  from: string;
  to: string;
  /** On the way of the difference. */
  way: boolean;
  differs: boolean;
}

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

export function isArrow(key: string): key is Arrow {
  return key.startsWith("Arrow");
}

/** The box there; null where there is none. Left and right follow lines: the way first, then what differs, then the nearest. */
export function walk(boxes: readonly WalkBox[], lines: readonly WalkLine[], here: string, arrow: Arrow): string | null {
  const at = boxes.find(({ key }) => key === here);
  if (!at) return null;
  if (arrow === "ArrowUp" || arrow === "ArrowDown") {
    const column = boxes.filter(({ column }) => column === at.column).sort((a, b) => a.top - b.top);
    return column[column.indexOf(at) + (arrow === "ArrowDown" ? 1 : -1)]?.key ?? null;
  }
  const right = arrow === "ArrowRight";
  const ends = lines
    .filter((line) => (right ? line.from : line.to) === here)
    .flatMap((line) => {
      const box = boxes.find(({ key }) => key === (right ? line.to : line.from));
      return box ? [{ line, box }] : [];
    });
  ends.sort(
    (a, b) =>
      Number(b.line.way) - Number(a.line.way) ||
      Number(b.line.differs) - Number(a.line.differs) ||
      Math.abs(a.box.top - at.top) - Math.abs(b.box.top - at.top),
  );
  return ends[0]?.box.key ?? null;
}
