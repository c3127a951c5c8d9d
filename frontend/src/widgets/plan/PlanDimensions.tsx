import { Button, NativeSelect, TextInput } from "@mantine/core";
import { useState } from "react";
import { type PlanLayout, setWay, type Way } from "../../base/comparison/plan";
import { useTranslation } from "../../texts/useTranslation";
import classes from "./PlanEditor.module.css";

const GRADIENTS = ["mean", "sum"] as const;

/** The part of a plan about tensors by name, and about gradients. */
export function PlanDimensions({ layout, onChange }: { layout: PlanLayout; onChange: (layout: PlanLayout) => void }) {
  const { t } = useTranslation();
  const [pattern, setPattern] = useState("");
  const add = () => {
    if (pattern.trim() !== "") onChange(setWay(layout, pattern.trim(), "skip"));
    setPattern("");
  };
  return (
    <>
      {layout.dimensions.length > 0 && (
        <table className={classes.table}>
          <tbody>
            {layout.dimensions.map((entry) => (
              <tr key={entry.pattern} data-testid="plan-dimension">
                <td className="mono">{entry.pattern}</td>
                <td>
                  <WaySelect
                    label={entry.pattern}
                    way={entry.way as Way}
                    onChange={(way) => onChange(setWay(layout, entry.pattern, way))}
                  />
                </td>
                <td>
                  <Button
                    variant="subtle"
                    size="compact-xs"
                    onClick={() => onChange(setWay(layout, entry.pattern, null))}
                  >
                    {t("plan.forget")}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      <div className={classes.row}>
        <TextInput
          aria-label={t("plan.pattern")}
          placeholder="Module.*.mlp.up.*.output.0"
          className={classes.pattern}
          value={pattern}
          onChange={(event) => setPattern(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter") return;
            event.preventDefault();
            add();
          }}
          styles={{ input: { fontFamily: "var(--mono)" } }}
          data-testid="plan-pattern"
        />
        <Button variant="default" size="compact-xs" disabled={pattern.trim() === ""} onClick={add}>
          {t("plan.add")}
        </Button>
        <NativeSelect
          size="xs"
          aria-label={t("plan.gradients")}
          data={[
            { value: "", label: t("plan.gradientsOf.found") },
            ...GRADIENTS.map((word) => ({ value: word as string, label: t(`plan.gradientsOf.${word}`) })),
          ]}
          value={layout.gradients ?? ""}
          onChange={(event) => onChange({ ...layout, gradients: event.currentTarget.value || null })}
        />
      </div>
    </>
  );
}

const MOST_DIMENSIONS = 8;

interface WaySelectProps {
  label: string;
  way: Way | "odd";
  /** Of the tensor, where that is known. */
  dimensions?: number;
  onChange: (way: Way) => void;
}

/** What becomes of a tensor: a dimension to join along, or a word. */
export function WaySelect({ label, way, dimensions = MOST_DIMENSIONS, onChange }: WaySelectProps) {
  const { t } = useTranslation();
  const count = Math.max(dimensions, typeof way === "number" ? way + 1 : 0);
  return (
    <NativeSelect
      size="xs"
      aria-label={`${t("plan.way")}: ${label}`}
      data={[
        ...(way === "odd" ? [{ value: "odd", label: t("plan.wayOf.odd"), disabled: true }] : []),
        ...Array.from({ length: count }, (_, place) => ({
          value: String(place),
          label: t("plan.wayOf.dimension", { dimension: place }),
        })),
        ...(["copy", "sum", "skip"] as const).map((word) => ({
          value: word as string,
          label: t(`plan.wayOf.${word}`),
        })),
      ]}
      value={String(way)}
      onChange={(event) => {
        const { value } = event.currentTarget;
        onChange(value === "copy" || value === "sum" || value === "skip" ? value : Number(value));
      }}
      data-testid="plan-way"
    />
  );
}
