import { ActionIcon, Checkbox, Menu, Popover, Select, Tooltip } from "@mantine/core";
import { createContext, type ReactNode, useContext, useMemo } from "react";
import { useTranslation } from "../../texts/useTranslation";
import { Icon } from "../basic/Icon";
import docked from "../page/Docked.module.css";
import classes from "./Plots.module.css";

interface PlotFrameProps {
  tabs: ReactNode;
  /** Fields that belong to the shown plot. */
  fields: ReactNode;
  /** null: the plot has no scale to choose. */
  log: { checked: boolean; onChange: (log: boolean) => void } | null;
  /** What the plot can be saved as; null: nothing is drawn yet. */
  save: ReactNode | null;
  large: boolean;
  onLarge: (large: boolean) => void;
  /** There is room for all fields in the line. */
  stage?: boolean;
  children: ReactNode;
}

/** Plots, one at a time, below the line that chooses them. */
export function PlotFrame(props: PlotFrameProps) {
  const { tabs, fields, log, save, large, onLarge, stage = false, children } = props;
  const { t } = useTranslation();
  // A click in a list outside of what is open would close it.
  const inside = useMemo(() => ({ withinPortal: stage }), [stage]);
  const settings = (
    <FieldContext value={inside}>
      {fields}
      {log && (
        <Checkbox
          label={t("evidence.log")}
          title={t("evidence.logHint")}
          checked={log.checked}
          onChange={(event) => log.onChange(event.currentTarget.checked)}
          data-testid="plot-log"
        />
      )}
    </FieldContext>
  );
  return (
    <>
      <div className={classes.head}>
        {tabs}
        <div className={classes.tools}>
          {stage ? (
            settings
          ) : (
            <Popover position="bottom-end" withinPortal>
              <Popover.Target>
                <Tooltip label={t("evidence.plotSettings")}>
                  <ActionIcon size="sm" aria-label={t("evidence.plotSettings")} data-testid="plot-settings">
                    <Icon name="settings" size={13} />
                  </ActionIcon>
                </Tooltip>
              </Popover.Target>
              <Popover.Dropdown
                className={classes.settings}
                aria-label={t("evidence.plotSettings")}
                onKeyDown={(event) => event.key === "Escape" && event.preventDefault()} // it closes this and nothing else
              >
                {settings}
              </Popover.Dropdown>
            </Popover>
          )}
          <Menu position="bottom-end">
            <Menu.Target>
              <Tooltip label={t("evidence.plotSave")}>
                <ActionIcon
                  size="sm"
                  aria-label={t("evidence.plotSave")}
                  disabled={save === null}
                  data-testid="plot-save"
                >
                  <Icon name="save" size={13} />
                </ActionIcon>
              </Tooltip>
            </Menu.Target>
            <Menu.Dropdown>{save}</Menu.Dropdown>
          </Menu>
          <Tooltip label={t(large ? "evidence.plotSmaller" : "evidence.plotLarger")}>
            <ActionIcon
              className={docked.resize}
              size="sm"
              aria-label={t("evidence.plotLarger")}
              aria-pressed={large}
              onClick={() => onLarge(!large)}
              data-testid="plot-large"
            >
              <Icon name={large ? "close" : "enlarge"} size={12} />
            </ActionIcon>
          </Tooltip>
        </div>
      </div>
      {children}
    </>
  );
}

/** Where the lists of fields open. */
const FieldContext = createContext({ withinPortal: true });

interface TensorFieldProps {
  /** Names of the tensors, as the address has them. */
  tensors: readonly string[];
  shown: string;
  onShow: (tensor: string) => void;
}

/** Which tensor of the call the plot is about. */
export function TensorField({ tensors, shown, onShow }: TensorFieldProps) {
  const inside = useContext(FieldContext);
  const { t } = useTranslation();
  return (
    <Select
      aria-label={t("evidence.plotItem")}
      data-testid="plot-item"
      w={104}
      allowDeselect={false}
      data={[...tensors]}
      value={shown}
      onChange={(item) => item !== null && onShow(item)}
      comboboxProps={{ ...inside, width: 260, position: "bottom-end" }}
    />
  );
}

/** What a cell of a map holds. */
export function ReduceField({ rms, onChange }: { rms: boolean; onChange: (rms: boolean) => void }) {
  const inside = useContext(FieldContext);
  const { t } = useTranslation();
  return (
    <Select
      aria-label={t("evidence.reduce")}
      data-testid="plot-reduce"
      comboboxProps={inside}
      w={84}
      allowDeselect={false}
      data={[
        { value: "max", label: t("evidence.reduceMax") },
        { value: "rms", label: t("evidence.reduceRms") },
      ]}
      value={rms ? "rms" : "max"}
      onChange={(reduce) => onChange(reduce === "rms")}
    />
  );
}

interface AxisFieldsProps {
  shape: readonly number[];
  axes: readonly number[] | null;
  onChange: (axes: number[]) => void;
}

/** Which dimension goes down and which across; choosing one that is taken swaps the two. */
export function AxisFields({ shape, axes, onChange }: AxisFieldsProps) {
  const inside = useContext(FieldContext);
  const { t } = useTranslation();
  const [down, across] = axes?.length === 2 ? axes : [shape.length - 2, shape.length - 1];
  const options = shape.map((size, axis) => ({ value: String(axis), label: `dim ${axis} · ${size}` }));
  const pick = (place: 0 | 1) => (value: string | null) => {
    const axis = Number(value);
    const next = place === 0 ? [axis, axis === across ? down : across] : [axis === down ? across : down, axis];
    onChange(next as number[]);
  };
  return (
    <>
      {([down, across] as const).map((axis, place) => (
        <Select
          key={place === 0 ? "down" : "across"}
          aria-label={t(place === 0 ? "evidence.axisDown" : "evidence.axisAcross")}
          title={t(place === 0 ? "evidence.axisDown" : "evidence.axisAcross")}
          leftSection={place === 0 ? "↓" : "→"}
          leftSectionWidth={20}
          data-testid={place === 0 ? "axis-down" : "axis-across"}
          comboboxProps={inside}
          w={108}
          allowDeselect={false}
          data={options}
          value={String(axis)}
          onChange={pick(place as 0 | 1)}
        />
      ))}
    </>
  );
}
