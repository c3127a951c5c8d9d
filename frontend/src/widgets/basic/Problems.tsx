import { Popover } from "@mantine/core";
import type { ReactNode } from "react";
import type { Problem } from "../../api/types";
import { sayProblem } from "../../texts/serverTexts";
import { Icon } from "./Icon";
import classes from "./Problems.module.css";

interface NotesProps {
  label: string;
  warn?: boolean;
  testId?: string;
  children: ReactNode;
}

/** A count that opens to the list it counts. */
export function Notes({ label, warn = true, testId, children }: NotesProps) {
  return (
    <Popover position="bottom-start" shadow="md" width="max-content" withinPortal trapFocus={false}>
      <Popover.Target>
        <button type="button" className={`plain ${classes.button}`} data-warn={warn || undefined} data-testid={testId}>
          {warn && <Icon name="warning" size={12} />}
          {label}
        </button>
      </Popover.Target>
      <Popover.Dropdown className={classes.list}>{children}</Popover.Dropdown>
    </Popover>
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
