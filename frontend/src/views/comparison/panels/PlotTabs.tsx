/** The plots as tabs in one row; those without room are in a menu. */
import { ActionIcon, Menu, Tabs, Tooltip } from "@mantine/core";
import { useLayoutEffect, useRef, useState } from "react";
import { PLOTS, type PlotTab } from "../../../base/address/address";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { useWidth } from "../../../widgets/basic/useWidth";
import classes from "./Plots.module.css";

interface PlotTabsProps {
  tab: PlotTab;
  onTab: (tab: PlotTab) => void;
}

export function PlotTabs({ tab, onTab }: PlotTabsProps) {
  const { t, language } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const room = useWidth(box);
  const [widths, setWidths] = useState<{ language: string; of: readonly number[] } | null>(null);
  const measured = widths?.language === language ? widths.of : null;
  // All are drawn once in each language, to be measured.
  useLayoutEffect(() => {
    if (measured || room === 0) return;
    const tabs = [...(box.current?.querySelectorAll<HTMLElement>("[role=tab]") ?? [])];
    if (tabs.length === PLOTS.length) setWidths({ language, of: tabs.map((one) => one.offsetWidth) });
  }, [measured, room, language]);
  const shown = measured ? fitting(measured, room, PLOTS.indexOf(tab)) : PLOTS.map((_, place) => place);
  const rest = PLOTS.filter((_, place) => !shown.includes(place));
  return (
    <div ref={box} className={classes.tabs} data-measuring={measured === null || undefined}>
      <Tabs value={tab} onChange={(next) => next && onTab(next as PlotTab)} variant="pills">
        <Tabs.List aria-label={t("evidence.plots")}>
          {PLOTS.map((one, index) =>
            shown.includes(index) ? (
              <Tabs.Tab
                key={one}
                value={one}
                px={5}
                py={2}
                fz={12}
                title={`${t(`evidence.plotHint.${one}`)} (${index + 1})`}
                data-testid={`plot-${one}`}
              >
                {t(`evidence.plot.${one}`)}
              </Tabs.Tab>
            ) : null,
          )}
        </Tabs.List>
      </Tabs>
      {rest.length > 0 && (
        <Menu position="bottom-end">
          <Menu.Target>
            <Tooltip label={t("evidence.plotMore")}>
              <ActionIcon size="sm" aria-label={t("evidence.plotMore")} data-testid="plot-more">
                <Icon name="down" size={12} />
              </ActionIcon>
            </Tooltip>
          </Menu.Target>
          <Menu.Dropdown>
            {rest.map((one) => (
              <Menu.Item
                key={one}
                title={t(`evidence.plotHint.${one}`)}
                rightSection={<span className="dim">{PLOTS.indexOf(one) + 1}</span>}
                onClick={() => onTab(one)}
                data-testid={`plot-${one}`}
              >
                {t(`evidence.plot.${one}`)}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
    </div>
  );
}

/** Pixels of the button that opens the menu. */
const BUTTON = 24;

/** Places of the tabs that have room; the one that is open is always among them. */
function fitting(widths: readonly number[], room: number, open: number): number[] {
  const total = widths.reduce((sum, one) => sum + one, 0);
  if (total <= room) return widths.map((_, place) => place);
  let left = room - BUTTON - (widths[open] ?? 0);
  const found: number[] = [open];
  for (const [place, width] of widths.entries()) {
    if (place === open) continue;
    if (width > left) break;
    left -= width;
    found.push(place);
  }
  return found;
}
