/** The plots as tabs in one row; those without room are in a menu. */
import { ActionIcon, Menu, Tabs, Tooltip } from "@mantine/core";
import { memo, type ReactNode, useLayoutEffect, useRef, useState } from "react";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import { useWidth } from "../basic/sizes";
import classes from "./Plots.module.css";

export interface PlotChoice<Tab extends string> {
  id: Tab;
  label: string;
  hint: string;
}

interface PlotTabsProps<Tab extends string> {
  /** In the order of their keys. */
  plots: readonly PlotChoice<Tab>[];
  shown: Tab;
  onShow: (tab: Tab) => void;
}

export const PlotTabs = memo(function PlotTabs<Tab extends string>({ plots, shown, onShow }: PlotTabsProps<Tab>) {
  const { t, language } = useTranslation();
  const box = useRef<HTMLDivElement>(null);
  const room = useWidth(box);
  const [widths, setWidths] = useState<{ language: string; of: readonly number[] } | null>(null);
  const measured = widths?.language === language ? widths.of : null;
  // All are drawn once in each language, to be measured.
  useLayoutEffect(() => {
    if (measured || room === 0) return;
    const tabs = [...(box.current?.querySelectorAll<HTMLElement>("[role=tab]") ?? [])];
    if (tabs.length === plots.length) setWidths({ language, of: tabs.map((one) => one.offsetWidth) });
  }, [measured, room, language, plots.length]);
  const open = plots.findIndex(({ id }) => id === shown);
  const places = measured ? fitting(measured, room, open) : plots.map((_, place) => place);
  const rest = plots.flatMap((one, place) => (places.includes(place) ? [] : [{ ...one, digit: place + 1 }]));
  return (
    <div ref={box} className={classes.tabs} data-measuring={measured === null || undefined}>
      <Tabs value={shown} onChange={(next) => next && onShow(next as Tab)} variant="pills">
        <Tabs.List aria-label={t("evidence.plots")}>
          {plots.map(({ id, label, hint }, index) =>
            places.includes(index) ? (
              <Tabs.Tab
                key={id}
                value={id}
                px={5}
                py={2}
                fz={12}
                title={`${hint} (${index + 1})`}
                data-testid={`plot-${id}`}
              >
                {label}
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
            {rest.map(({ id, label, hint, digit }) => (
              <Menu.Item
                key={id}
                title={hint}
                rightSection={<span className="dim">{digit}</span>}
                onClick={() => onShow(id)}
                data-testid={`plot-${id}`}
              >
                {label}
              </Menu.Item>
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
    </div>
  );
}) as <Tab extends string>(props: PlotTabsProps<Tab>) => ReactNode;

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
