import type { OverflowSummary } from "../../api/types";
import { formatCount } from "../../base/numbers/format";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./DumpView.module.css";
import { isClipped } from "./useOpening";

interface FirstOverflowProps {
  summary: OverflowSummary;
  onSelect: (name: string) => void;
}

/** The first non-finite or clipped number of a dump, or a line saying that there is none. */
export function FirstOverflow({ summary, onSelect }: FirstOverflowProps) {
  const { t } = useTranslation();
  const { first, checked, unknown, counts } = summary;
  const rest = unknown > 0 ? t("dump.overflow.unknown", { total: formatCount(unknown) }) : "";
  if (first) {
    return (
      <button
        type="button"
        className={`plain ${classes.pill} ${classes.alarm}`}
        onClick={() => onSelect(first.node)}
        title={[t("dump.overflow.firstHint"), rest].filter(Boolean).join(" · ")}
        data-testid="first-overflow"
      >
        ∞ {t(isClipped(first) ? "dump.overflow.firstClipped" : "dump.overflow.first")}:{" "}
        <span className="mono">{first.node}</span>
      </button>
    );
  }
  if (checked === 0) return null;
  return (
    <span className="dim" title={rest} data-testid="no-overflow">
      {(counts.intended ?? 0) > 0
        ? t("dump.overflow.noneBut", { total: formatCount(checked) })
        : t("dump.overflow.none", { count: checked, total: formatCount(checked) })}
    </span>
  );
}
