import { type ReactNode, useState } from "react";
import type { Problem } from "../../api/types";
import { sayProblem } from "../../texts/serverTexts";
import { lazyPart } from "../late/lazyPart";
import { NotesButton } from "./NotesButton";
import classes from "./Problems.module.css";

interface NotesProps {
  label: string;
  warn?: boolean;
  testId?: string;
  children: ReactNode;
}

const Popup = lazyPart(async () => (await import("./NotesPopup")).NotesPopup, { late: true });

/** A count that opens to the list it counts; a click before its script is there opens it as soon as that is there. */
export function Notes({ label, warn = true, testId, children }: NotesProps) {
  const [early, setEarly] = useState(false);
  return (
    <Popup
      label={label}
      warn={warn}
      testId={testId}
      opened={early}
      fallback={<NotesButton label={label} warn={warn} onClick={() => setEarly(true)} data-testid={testId} />}
    >
      {children}
    </Popup>
  );
}

const SHOWN = 200;

export function ProblemList({ problems, total }: { problems: readonly Problem[]; total?: number }) {
  const rest = (total ?? problems.length) - Math.min(SHOWN, problems.length);
  return (
    <ul className={classes.problems} data-testid="problems">
      {problems.slice(0, SHOWN).map((problem, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes order
        <li key={index}>
          {sayProblem(problem)}
          <div className={`${classes.loc} mono`}>
            {problem.loc && `${problem.loc} · `}
            {problem.kind}
          </div>
        </li>
      ))}
      {rest > 0 && <li className="dim">… +{rest}</li>}
    </ul>
  );
}
