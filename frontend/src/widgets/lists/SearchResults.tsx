import { addressOf } from "../../base/comparison/unmatched";
import { MiddleName } from "../basic/MiddleName";
import { Failure } from "../basic/States";
import { ClassMark } from "../marks/Mark";
import classes from "./SearchResults.module.css";

interface SearchResultsProps {
  rows: readonly { name: string; address?: string; cls?: string }[];
  summary: string;
  problem: Error | null;
  selected: string | null;
  onSelect: (name: string) => void;
}

export function SearchResults({ rows, summary, problem, selected, onSelect }: SearchResultsProps) {
  return (
    <div className={classes.box} data-testid="search-results">
      {problem && <Failure problem={problem} />}
      <div className={`${classes.summary} dim`} aria-live="polite">
        {summary}
      </div>
      {rows.map((row) => (
        <button
          key={addressOf(row)}
          type="button"
          className={`plain ${classes.row}`}
          aria-current={addressOf(row) === selected || undefined}
          onClick={() => onSelect(addressOf(row))}
        >
          {row.cls !== undefined && <ClassMark name={row.name} cls={row.cls} />}
          <MiddleName name={row.name} tail={22} />
        </button>
      ))}
    </div>
  );
}
