/** A few steps of data flow around the selected call, which stands in the middle; never the whole graph. */
import { ActionIcon, SegmentedControl, Tooltip } from "@mantine/core";
import { useRef } from "react";
import { usePath } from "../../../api/comparison/nodes";
import type { PathView } from "../../../api/types";
import { HOPS, type Hops } from "../../../base/address/address";
import { useTranslation } from "../../../texts/useTranslation";
import { Icon } from "../../../widgets/basic/Icon";
import { Failure, Loading } from "../../../widgets/basic/States";
import { useWidth } from "../../../widgets/basic/sizes";
import { useShownComparison } from "../selection/result";
import { useSelection } from "../selection/SelectionProvider";
import { shortCall } from "./callWords";
import { PathGraph } from "./PathGraph";
import classes from "./Stage.module.css";

/** Pixels from which two steps on each side can be read. */
const WIDE = 620;

export function PathPanel({ selected }: { selected: string }) {
  const { t } = useTranslation();
  const { id } = useShownComparison();
  const { address, update, unit } = useSelection();
  const box = useRef<HTMLDivElement>(null);
  const width = useWidth(box);
  const hops: Hops = address.hops ?? (width > 0 && width < WIDE ? 1 : 2);
  const { data, error, refetch, isPlaceholderData } = usePath(id, width > 0 ? unit : null, selected, hops);
  return (
    <>
      <div className={classes.head}>
        <h2 className={classes.title}>{t("path.title")}</h2>
        <p className={classes.words} data-testid="path-way">
          {data && <WayWords view={data} />}
        </p>
        <div className={classes.ends}>
          <SegmentedControl
            size="xs"
            aria-label={t("path.hops")}
            title={t("path.hops")}
            data={HOPS.map(String)}
            value={String(hops)}
            onChange={(value) => update({ hops: Number(value) as Hops }, true)}
            data-testid="path-hops"
          />
          <Tooltip label={`${t("app.close")} (Esc)`}>
            <ActionIcon
              size="sm"
              aria-label={t("app.close")}
              onClick={() => update({ stage: null })}
              data-testid="stage-close"
            >
              <Icon name="close" size={12} />
            </ActionIcon>
          </Tooltip>
        </div>
      </div>
      <div ref={box} style={{ minHeight: 0, flex: 1, display: "flex", flexDirection: "column" }}>
        {error && !data ? (
          <Failure problem={error} onRetry={() => void refetch()} />
        ) : data ? (
          <PathGraph view={data} width={width} busy={isPlaceholderData} />
        ) : (
          <Loading />
        )}
      </div>
    </>
  );
}

/** From where to where the difference goes, and whether the call in the middle is on that way. */
function WayWords({ view }: { view: PathView }) {
  const { t } = useTranslation();
  const { way } = view;
  if (!way) return t("path.noWay");
  const ends = { start: shortCall(way.start.name), end: shortCall(way.end.name), count: way.length - 1 };
  return (
    <>
      {t("path.way", ends)}{" "}
      <span className="dim">
        {way.place === null ? t("path.beside") : t("path.place", { place: way.place + 1, length: way.length })}
      </span>
    </>
  );
}
