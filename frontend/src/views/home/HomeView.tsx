import { type DragEvent, useCallback, useMemo, useState } from "react";
import { useComparisons, useHealth } from "../../api/records";
import type { Side } from "../../base/comparison/sides";
import { readDrop } from "../../base/upload/pickedFiles";
import { useTranslation } from "../../texts/useTranslation";
import { Failure } from "../../widgets/basic/States";
import { lazyPart } from "../../widgets/late/lazyPart";
import { usePainted } from "../../widgets/late/painted";
import { Header } from "../../widgets/page/Header";
import { useListNews } from "../../widgets/watch/jobNews";
import { AddDump } from "./add/AddDump";
import { CompareForm } from "./compare/CompareForm";
import { DropOverlay } from "./DropOverlay";
import classes from "./HomeView.module.css";
import { ComparisonList } from "./lists/ComparisonList";
import { DumpList } from "./lists/DumpList";
import { useSides } from "./useSides";
import { useUploads } from "./useUploads";

const CheckpointPanel = lazyPart(async () => (await import("./checkpoints/CheckpointPanel")).CheckpointPanel, {
  late: true,
});
const MonitorPanel = lazyPart(async () => (await import("./monitors/MonitorPanel")).MonitorPanel, { late: true });

/** Start: compare two dumps, add dumps, find earlier comparisons. Files may be dropped anywhere. */
export function HomeView() {
  const { t } = useTranslation();
  const health = useHealth();
  const uploads = useUploads();
  const sides = useSides(uploads);
  const { picked, pick: setPicked, take } = sides;
  const [over, setOver] = useState<Side | "page" | null>(null);
  const comparisons = useComparisons("", "-created").data;
  useListNews(useMemo(() => comparisons?.pages.flatMap((page) => page.items), [comparisons]));
  usePainted(true);

  const drop = useCallback(
    async (event: DragEvent) => {
      event.preventDefault();
      setOver(null);
      const side = sideAt(event);
      take(await readDrop(event.dataTransfer), side);
    },
    [take],
  );
  const hold = (event: DragEvent) => {
    if (!event.dataTransfer.types.includes("Files")) return;
    event.preventDefault();
    setOver(sideAt(event) ?? "page");
  };
  // From one element to the next there is a related target; out of the window, or given up, there is none.
  const leave = (event: DragEvent) => event.relatedTarget === null && setOver(null);

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: dropping is a shortcut; buttons do the same
    <div
      className={classes.screen}
      onDragEnter={hold}
      onDragOver={hold}
      onDragLeave={leave}
      onDrop={(event) => void drop(event)}
    >
      <Header>
        <span className={`${classes.tagline} dim`}>{t("app.tagline")}</span>
        {health.data && <span className={`${classes.version} dim`}>{health.data.version}</span>}
      </Header>
      <main id="main" className={classes.main} tabIndex={-1}>
        <h1 className="sr">{t("home.title")}</h1>
        {health.error && <Failure problem={health.error} onRetry={() => void health.refetch()} />}
        <div className={classes.top}>
          <CompareForm sides={sides} />
          <AddDump uploads={uploads} picked={picked} onPick={setPicked} />
        </div>
        <ComparisonList />
        <DumpList picked={picked} onPick={setPicked} />
        <MonitorPanel />
        <CheckpointPanel />
      </main>
      {over !== null && <DropOverlay over={over} />}
    </div>
  );
}

/** The side whose zone files are held over. */
function sideAt(event: DragEvent): Side | null {
  const zone = event.target instanceof Element ? event.target.closest<HTMLElement>("[data-side]") : null;
  return (zone?.dataset.side as Side | undefined) ?? null;
}
