import { Button, Checkbox, Menu } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { useFilterCounts } from "../../../api/comparison/nodes";
import { microStep, withMicroStep } from "../../../base/address/searchTerms";
import { UNMATCHED_CAUSES } from "../../../base/comparison/unmatched";
import { MARKS, VERDICTS, verdictLabel } from "../../../base/comparison/verdicts";
import { formatCount } from "../../../base/numbers/format";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { WordMark } from "../../../widgets/marks/Mark";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import classes from "./Filter.module.css";

/** Which calls the list shows, by what the list shows of them; each entry with the number that it would show. */
export function FilterMenu() {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { address, unit, update } = useSelection();
  const { filter, query } = address;
  const [opened, setOpened] = useState(false);
  const counts = useFilterCounts(id, unit, { filter, query }, opened).data;
  const micro = microStep(query);
  const micros = Object.entries(counts?.micros ?? {});
  const chosen = filter.classes.length + filter.verdicts.length + filter.leftovers.length + Number(micro !== null);
  const toggle = <T,>(list: readonly T[], item: T): T[] =>
    list.includes(item) ? list.filter((other) => other !== item) : [...list, item];
  return (
    <Menu closeOnItemClick={false} position="bottom-start" opened={opened} onChange={setOpened}>
      <Menu.Target>
        <Button variant="default" leftSection={<Icon name="filter" size={12} />} px={8} data-testid="filter">
          {t("list.filter")}
          {chosen > 0 ? ` ${chosen}` : ""}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <div className={classes.menu}>
          <div>
            <Menu.Label>{t("list.filterClass")}</Menu.Label>
            {MARKS.map((word) => (
              <Entry
                key={word}
                checked={filter.classes.includes(word)}
                count={counts?.classes[word]}
                onClick={() => update({ filter: { ...filter, classes: toggle(filter.classes, word) } })}
                testId={`filter-${word}`}
              >
                <WordMark word={word} words />
              </Entry>
            ))}
            <Menu.Label>{t("list.filterVerdict")}</Menu.Label>
            {VERDICTS.map((verdict) => (
              <Entry
                key={verdict}
                checked={filter.verdicts.includes(verdict)}
                count={counts?.verdicts[verdict]}
                onClick={() => update({ filter: { ...filter, verdicts: toggle(filter.verdicts, verdict) } })}
                testId={`filter-verdict-${verdict.replace("/", "")}`}
              >
                {verdictLabel(verdict)}
              </Entry>
            ))}
          </div>
          <div>
            <Menu.Label>{t("list.filterLeftover")}</Menu.Label>
            {UNMATCHED_CAUSES.map((word) => (
              <Entry
                key={word}
                checked={filter.leftovers.includes(word)}
                count={counts?.leftovers[word]}
                onClick={() => update({ filter: { ...filter, leftovers: toggle(filter.leftovers, word) } })}
                title={t(`leftoverHelp.${word}`)}
                testId={`filter-left-${word}`}
              >
                {t(`leftovers.${word}`)}
              </Entry>
            ))}
            {micros.length > 1 && <Menu.Label>{t("list.filterMicro")}</Menu.Label>}
            {micros.length > 1 &&
              micros.map(([number, count]) => (
                <Entry
                  key={number}
                  checked={number === micro}
                  count={count}
                  onClick={() => update({ query: withMicroStep(query, number === micro ? null : number) })}
                  testId={`filter-micro-${number}`}
                >
                  {t("list.microStep", { number })}
                </Entry>
              ))}
          </div>
        </div>
      </Menu.Dropdown>
    </Menu>
  );
}

interface EntryProps {
  checked: boolean;
  count: number | undefined;
  onClick: () => void;
  title?: string;
  testId: string;
  children: ReactNode;
}

function Entry({ checked, count, onClick, title, testId, children }: EntryProps) {
  return (
    <Menu.Item
      py={3}
      leftSection={<Checkbox.Indicator size="xs" checked={checked} />}
      rightSection={<span className="num dim">{count === undefined ? "…" : formatCount(count)}</span>}
      onClick={onClick}
      title={title}
      data-testid={testId}
    >
      {children}
    </Menu.Item>
  );
}
