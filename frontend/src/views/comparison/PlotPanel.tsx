import { ActionIcon, Checkbox, Select, Tabs, Tooltip } from "@mantine/core";
import { useEffect, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { useFigure } from "../../api/queries";
import type { Comparison, NodeDetail, Pair } from "../../api/types";
import { PLOTS, type PlotTab } from "../../base/address";
import { toNumber } from "../../base/numbers";
import { Figure } from "../../widgets/Figure";
import { Icon } from "../../widgets/Icon";
import { Failure, Loading } from "../../widgets/States";
import classes from "./EvidencePanel.module.css";
import type { Triage } from "./useTriage";

const FIGURES: Record<PlotTab, string> = {
  api: "api-distribution",
  order: "error-order",
  hist: "histogram",
  error: "error-histogram",
};

interface PlotPanelProps {
  comparison: Comparison;
  triage: Triage;
  large: boolean;
  onLarge: (large: boolean) => void;
}

/** Four figures of the selected call; the last two are about one of its tensors. */
export function PlotPanel({ comparison, triage, large, onLarge }: PlotPanelProps) {
  const { t } = useTranslation();
  const { address, update, selected, unit, node } = triage;
  const { log } = address;
  // Histograms need tensors of both sides; without them the errors over the run say most.
  const tab = address.tab ?? (comparison.mode === "tensor" && node?.match !== "none" ? "hist" : "order");
  const tensors = useMemo(() => tensorPairs(node), [node]);
  const [chosen, setChosen] = useState<number | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another node has other tensors
  useEffect(() => setChosen(null), [node?.name, unit]);
  const about = tab === "hist" || tab === "error";
  const pair = about ? (tensors.find((one) => one.id === chosen) ?? worst(tensors)) : undefined;
  const figure = useFigure(comparison.id, node ? unit : null, {
    name: FIGURES[tab],
    node: selected,
    pair: pair?.id ?? null,
    log,
  });
  const label = t(`evidence.plotHint.${tab}`);
  return (
    <>
      <div className={classes.plotHead}>
        <Tabs value={tab} onChange={(next) => next && update({ tab: next as PlotTab })} variant="pills">
          <Tabs.List aria-label={t("evidence.plots")}>
            {PLOTS.map((name, index) => (
              <Tabs.Tab
                key={name}
                value={name}
                px={7}
                py={2}
                fz={12}
                title={`${t(`evidence.plotHint.${name}`)} (${index + 1})`}
                data-testid={`plot-${name}`}
              >
                {t(`evidence.plot.${name}`)}
              </Tabs.Tab>
            ))}
          </Tabs.List>
        </Tabs>
        {about && tensors.length > 1 && pair && (
          <Select
            aria-label={t("evidence.plotItem")}
            data-testid="plot-item"
            w={112}
            ml="auto"
            allowDeselect={false}
            data={tensors.map((one) => ({ value: String(one.id), label: itemLabel(one) }))}
            value={String(pair.id)}
            onChange={(id) => setChosen(Number(id))}
            comboboxProps={{ width: 320, position: "bottom-end" }}
          />
        )}
        <Checkbox
          ml={about && tensors.length > 1 ? 0 : "auto"}
          label={t("evidence.log")}
          title={t("evidence.logHint")}
          checked={log}
          onChange={(event) => update({ log: event.currentTarget.checked }, true)}
        />
        <Tooltip label={t(large ? "evidence.plotSmaller" : "evidence.plotLarger")}>
          <ActionIcon
            className={classes.resize}
            size="sm"
            aria-label={t("evidence.plotLarger")}
            aria-pressed={large}
            onClick={() => onLarge(!large)}
            data-testid="plot-large"
          >
            <Icon name="chevron" size={12} turn={large ? 90 : -90} />
          </ActionIcon>
        </Tooltip>
      </div>
      {figure.error && <Failure problem={figure.error} onRetry={() => void figure.refetch()} />}
      {!figure.data && !figure.error && <Loading />}
      {figure.data && !figure.error && (
        <div className={figure.isPlaceholderData ? classes.busy : undefined}>
          <Figure reply={figure.data} label={label} onPick={(order) => void triage.pickOrder(order)} />
        </div>
      )}
    </>
  );
}

function tensorPairs(node: NodeDetail | undefined): Pair[] {
  return (node?.items ?? []).filter((pair) => (pair.target_leaf ?? pair.golden_leaf)?.shape != null);
}

/** The output with the largest error, else the tensor with the largest error. */
function worst(pairs: readonly Pair[]): Pair | undefined {
  const outputs = pairs.filter((pair) => pair.role === "output" || pair.role === "parameters_grad");
  const score = (pair: Pair) => {
    const number = toNumber(pair.score) ?? -1;
    return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number;
  };
  return [...(outputs.length > 0 ? outputs : pairs)].sort((a, b) => score(b) - score(a))[0];
}

function itemLabel(pair: Pair): string {
  const path = (pair.target_leaf ?? pair.golden_leaf)?.path ?? "";
  return path ? `${pair.role}.${path}` : pair.role;
}
