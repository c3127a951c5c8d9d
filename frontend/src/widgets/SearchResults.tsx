import { addressOf } from "../base/leftovers";
import { ClassMark } from "./Mark";
import { MiddleName } from "./MiddleName";
import classes from "./SearchResults.module.css";
import { Failure } from "./States";

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
          {row.cls !== undefined && <ClassMark cls={row.cls} />}
          <MiddleName name={row.name} tail={22} />
        </button>
      ))}
    </div>
  );
}
